package plan

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// TestExecute_Shares: a run is left out if package share decides so from the ledger at that moment.
// The test rebuilds the book and recounts what is left for each run.
func TestExecute_Shares(t *testing.T) {
	leftOut := 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		p.Price = []quota.Cost{{Bucket: quota.DefaultBucket,
			Units: rapid.SampledFrom([]int64{1, 1, 3}).Draw(t, "price")}}
		known := Standing{Name: quota.DefaultBucket}
		for i := range rapid.IntRange(0, 5).Draw(t, "entries before") {
			known.Spent = append(known.Spent,
				quota.Spent{At: p.From.Add(time.Duration(i-6) * 3 * time.Hour),
					Units: rapid.Int64Range(1, 15).Draw(t, "units before"),
					Labels: quota.Labels{quota.LabelRegion: rapid.SampledFrom(eight[:3]).Draw(t,
						"by"),
						quota.LabelJob: rapid.SampledFrom([]string{"trending", "other"}).Draw(t,
							"job")}})
		}
		known.Reservations = []quota.Reservation{{Left: rapid.Int64Range(0, 9).Draw(t, "held"),
			ExpiresAt: p.From.Add(7 * time.Hour)}}
		p.Before = []Standing{known}
		runs, _ := played(p)
		log := known.Spent
		for _, run := range runs {
			if admitted := asked(p, log, run); admitted == (run.Outcome == LeftOut) {
				t.Fatalf("%v: admitted by the rule: %v", run, admitted)
			}
			if run.Outcome == LeftOut {
				leftOut++
			}
			if run.Pages > 0 {
				log = append(log, quota.Spent{At: run.At, Units: run.Pages * p.Price[0].Units,
					Labels: quota.Labels{quota.LabelRegion: run.Region, quota.LabelJob: run.Job}})
			}
		}
	})
	if leftOut == 0 {
		t.Error("no run is left out: the limits are drawn badly")
	}
}

// asked reports whether the rule admits a run, from the log alone.
func asked(p Plan, log []quota.Spent, run Run) bool {
	rule := share.Rule{Lanes: p.Lanes, Price: p.Price, Limits: p.Limits, Reset: p.Reset}
	book := rule.Begin()
	mine := 0
	for i, l := range p.Lanes {
		if l.Region == run.Region {
			mine = i
		}
	}
	for _, e := range log {
		by := share.Others
		for i, l := range p.Lanes {
			if e.Labels[quota.LabelRegion] == l.Region && e.Labels[quota.LabelJob] == l.Job {
				by = i
			}
		}
		book.Charge(by, e.At.UnixMicro(), e.Units)
	}
	return book.Admit(mine, run.At.UnixMicro(), func(limit int) int64 {
		return left(p, log,
			p.Limits[limit], run.At)
	}).Run
}

// left returns what a limit leaves for scheduled charges at a moment.
func left(p Plan, log []quota.Spent, l quota.Limit, at time.Time) int64 {
	units := l.Cap(false)
	if r := p.Before[0].Reservations[0]; r.ExpiresAt.After(at) {
		units -= r.Left
	}
	from := at.Add(time.Second - l.Window.Length) // units that leave within a second are free
	if l.Window.IsCalendar() {
		start, _ := l.Window.Bounds(at)
		from = start.Add(-time.Microsecond)
	}
	for _, e := range log {
		if e.At.After(from) {
			units -= e.Units
		}
	}
	return max(0, units)
}

// TestExecute_DefaultLimits: with any 24 hours and the day as limits, for half of what the
// schedule wants, and a start in the middle of a day, every region is served every two hours, by
// its weight, and no chart is interrupted.
func TestExecute_DefaultLimits(t *testing.T) {
	los := day(t, "America/Los_Angeles")
	p := Plan{Price: price, Reset: los, From: clock(t, "2026-06-01 19:00:00"),
		To: clock(t, "2026-06-05 07:00:00"),
		Lanes: lanes(t, "*/10 * * * *", 4, time.Minute, "US", "GB", "DE",
			"FR"), Limits: []quota.Limit{sliding(1152, 24*time.Hour), {Bucket: "default",
			Units: 1152, Window: los}}}
	p.Lanes[0].Weight = 2
	runs, r := played(p)
	if r.Denied+r.Partial != 0 {
		t.Errorf("%d denied, %d cut off", r.Denied, r.Partial)
	}
	pages := make(map[string]int64)
	last := make(map[string]time.Time)
	for _, run := range runs {
		if run.Outcome == LeftOut {
			continue
		}
		if before, ok := last[run.Region]; ok && run.At.Sub(before) > 2*time.Hour {
			t.Errorf("%s has no run from %v to %v", run.Region, before, run.At)
		}
		last[run.Region] = run.At
		pages[run.Region] += run.Pages
	}
	if us, de := pages["US"], pages["DE"]; us < 19*de/10 || us > 21*de/10 {
		t.Errorf("US, of weight 2, has %d pages and DE %d", us, de)
	}
	for _, d := range r.Days[1:] {
		if d.Pages < 1152*95/100 {
			t.Errorf("only %d units are used in the day from %v", d.Pages, d.Start)
		}
	}
}
