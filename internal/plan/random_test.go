package plan

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

var specs = []string{"0 * * * *", "*/20 * * * *", "30 */3 * * *", "0 0 * * *", "15 2 * * *",
	"@every 1000s", "@every 47m", "5,6 */2 * * *"}

// often lists specs whose ticks are close enough to resume an interrupted chart.
var often = []string{"*/10 * * * *", "*/5 * * * *", "0,15,31 * * * *", "@every 400s"}

// drawn returns a plan of a few lanes and limits over some days, some around a clock change. Half
// of them have frequent ticks for some hours, under a window that interrupts charts.
func drawn(t *rapid.T) Plan {
	draw := func(what string, low, high int64) int64 {
		return rapid.Int64Range(low, high).Draw(t, what)
	}
	los, err := time.LoadLocation("America/Los_Angeles")
	must(t, err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	from := rapid.SampledFrom([]string{"2026-10-31T07:00:00Z", "2026-03-07T08:00:00Z",
		"2026-03-28T11:30:00Z", "2026-06-01T19:00:00Z", "2026-06-02T01:10:00Z",
		"2027-01-01T05:30:00Z", "2026-12-31T21:10:00Z"}).Draw(t, "from")
	p := Plan{Price: price, Reset: quota.Window{Calendar: "day", Zone: los}}
	if p.From, err = time.Parse(time.RFC3339, from); err != nil {
		t.Fatal(err)
	}
	specs, hours, fewest, crowded := specs, 60, int64(1), rapid.Bool().Draw(t, "crowded")
	if crowded {
		specs, hours, fewest = often, 8, 3
		short := quota.Sliding(time.Duration(rapid.IntRange(2, 25).Draw(t, "short")) * time.Minute)
		p.Limits = []quota.Limit{{Bucket: quota.DefaultBucket,
			Units: draw("units", 1, 9), Window: short}}
	}
	p.To = p.From.Add(time.Duration(rapid.IntRange(1, hours).Draw(t, "hours")) * time.Hour)
	for i := range rapid.IntRange(1, 5).Draw(t, "lanes") {
		s, err := schedule.Parse(rapid.SampledFrom(specs).Draw(t, "spec"),
			rapid.SampledFrom([]*time.Location{time.UTC, los}).Draw(t, "zone"))
		must(t, err)
		offset := time.Duration(rapid.IntRange(0, 3).Draw(t, "offset")) * 5 * time.Minute
		l := schedule.Lane{Job: "trending", Region: eight[i], Schedule: s, Offset: offset}
		p.Lanes = append(p.Lanes, share.Lane{Lane: l,
			Pages: draw("pages", fewest, 5), Weight: draw("weight", 0, 3),
			Priority: draw("priority", 0, 1), Floor: draw("floor", 0, 20)})
	}
	windows := []quota.Window{quota.Sliding(24 * time.Hour), quota.Sliding(7 * time.Hour),
		quota.Sliding(time.Hour), quota.Sliding(7 * time.Minute),
		{Calendar: "day", Zone: los}, {Calendar: "day", Zone: berlin},
		{Calendar: "hour", Zone: los}, {Calendar: "minute", Zone: berlin},
		{Calendar: "week", Zone: berlin}, {Calendar: "month", Zone: los},
		{Length: 5 * time.Hour, Anchored: true},
		{Restore: quota.Rate{Units: draw("restored", 1, 9), Per: 7 * time.Minute}}}
	if !crowded && rapid.Bool().Draw(t, "one window") {
		windows = []quota.Window{rapid.SampledFrom(windows[7:]).Draw(t, "window")}
	}
	for _, w := range windows {
		if rapid.IntRange(0, 4).Draw(t, "limited") > 0 && len(p.Limits) > 0 {
			continue
		}
		units := draw("units", 0, 120)
		p.Limits = append(p.Limits, quota.Limit{Bucket: quota.DefaultBucket, Units: units,
			Headroom: min(units, draw("headroom", 0, 9)), Window: w})
	}
	if rapid.Bool().Draw(t, "paced") {
		pace := &quota.Pace{Slack: draw("slack", 0, 30)}
		if rapid.Bool().Draw(t, "curved") {
			pace.Curve = rapid.SliceOfN(rapid.Int64Range(0, 9), 24, 24).Draw(t, "curve")
			pace.Curve[12]++
		}
		p.Paces = []quota.Limit{{Bucket: quota.DefaultBucket, Units: draw("paced units", 1, 120),
			Window: p.Reset, Pace: pace}}
	}
	return p
}

// TestExecute_Random checks by a count page by page that allowed pages never exceed a window and
// denied ones would have, and that the report adds up its runs. A run wants what its chart lacks,
// and is complete when it gets that.
func TestExecute_Random(t *testing.T) {
	resumed := 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		runs, r := played(p)
		var stamps []int64
		var pages, wanted, lost int64
		used := func(l quota.Limit, n int64) (units int64) {
			if l.Window.IsRestoring() {
				return restored(l.Window.Restore, stamps, n)
			}
			from := n - l.Window.Length.Microseconds()
			if l.Window.IsCalendar() {
				start, _ := l.Window.Bounds(moment(n))
				from = start.UnixMicro() - 1
			}
			for _, s := range stamps {
				if s > from {
					units++
				}
			}
			return units
		}
		most := make([]int64, len(p.Limits))
		for i, run := range runs {
			lane := laneOf(p, run)
			if m := missing(lane, runs[:i], run.At); run.Wanted != m || run.Pages > m ||
				run.Lost() == (run.Pages == m) {
				t.Fatalf("%v: %d pages are missing", run, m)
			}
			floored := belowFloor(p, lane, runs[:i], run.At)
			if wanted += run.Wanted; run.Pages > 0 && run.Wanted < lane.Pages {
				resumed++
			}
			if n := after(stamps, run.At); run.Wanted > 1 && wholeFits(p, run, n, floored, used) {
				for i, l := range p.Limits {
					most[i] = max(most[i], used(l, n)+run.Wanted)
				}
				stamps = append(stamps, slices.Repeat([]int64{n}, int(run.Wanted))...)
				if run.Lost() {
					t.Fatalf("%v: all pages would have fitted", run)
				}
				pages += run.Pages
				continue
			}
			for page := range run.Pages + 1 {
				n := after(stamps, run.At)
				fits := true
				for i, l := range p.Limits {
					u := used(l, n) + 1
					fits = fits && u <= l.CapAt(moment(n), false, false)
					if page < run.Pages {
						most[i] = max(most[i], u)
					}
				}
				for _, l := range p.Paces {
					fits = fits && (floored || used(l, n)+1 <= l.CapAt(moment(n), false, false))
				}
				switch {
				case page < run.Pages && !fits:
					t.Fatalf("%v: page %d passes a limit", run, page)
				case page < run.Pages:
					stamps = append(stamps, n)
				case (run.Outcome == Partial || run.Outcome == Denied) && fits:
					t.Fatalf("%v: page %d would have fitted", run, page)
				}
			}
			pages += run.Pages
			if run.Lost() {
				lost++
			}
		}
		for i, u := range r.Windows[:len(p.Limits)] {
			if u.Peak != most[i] || u.Peak > u.Cap {
				t.Fatalf("%s: peak %d of %d, counted %d", u.Limit.Name(), u.Peak, u.Cap, most[i])
			}
		}
		var planned int64
		for _, d := range r.Days {
			planned += d.Planned
		}
		if r.Pages != pages || r.Wanted != wanted || planned != wanted || r.Lost() != lost ||
			r.Runs != int64(len(runs)) {
			t.Fatalf("%+v, planned %d, counted %d of %d pages, %d lost of %d", r.Counts, planned,
				pages, wanted, lost, len(runs))
		}
	})
	t.Logf("%d runs have resumed a chart", resumed)
}

// after returns when a ledger stamps a charge at a moment: after all entries before.
func after(stamps []int64, at time.Time) int64 {
	if k := len(stamps); k > 0 {
		return max(at.UnixMicro(), stamps[k-1]+1)
	}
	return at.UnixMicro()
}

// wholeFits reports whether all pages of a run fit at once, unless its share leaves it out.
func wholeFits(p Plan, run Run, n int64, floored bool,
	used func(l quota.Limit, n int64) int64) bool {
	limits := p.Limits
	if !floored {
		limits = slices.Concat(limits, p.Paces)
	}
	exceeds := func(l quota.Limit) bool {
		return used(l, n)+run.Wanted > l.CapAt(moment(n), false, false)
	}
	return run.Outcome != LeftOut && !slices.ContainsFunc(limits, exceeds)
}

// restored returns the level of a restoring bucket: the pages charged, less what has come back
// since.
func restored(r quota.Rate, stamps []int64, n int64) (level int64) {
	num, den := r.Terms()
	for i, s := range stamps {
		level = max(level, int64(len(stamps)-i)*den-num*(n-s))
	}
	return (level + den - 1) / den
}

// belowFloor counts whether a lane has not had its floor of the day, with pages of one unit.
func belowFloor(p Plan, lane share.Lane, before []Run, at time.Time) bool {
	start, _ := p.Reset.Bounds(at)
	left := lane.Floor
	for _, r := range before {
		if r.Region == lane.Region && !r.At.Before(start) {
			left -= r.Pages
		}
	}
	return left > 0
}
