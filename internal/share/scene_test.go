package share

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// scene is a set of lanes that tick for some days under limits.
type scene struct {
	lanes  []Lane
	limits []quota.Limit
	start  time.Duration // after midnight
	days   int
}

// played is the result of a scene.
type played struct {
	runs   []int
	waits  []time.Duration // each lane's longest wait, from its first run on
	first  []time.Duration // each lane's wait before its first run
	perDay []int           // runs
	denied int             // runs that were admitted and did not fit
}

func day(units int64) quota.Limit {
	return quota.Limit{Bucket: quota.DefaultBucket, Units: units, Window: utc}
}

func sliding(units int64) quota.Limit {
	limit := day(units)
	limit.Window = quota.Sliding(24 * time.Hour)
	return limit
}

func eight(change ...func(i int, l *Lane)) []Lane { return lanes(8, half, 4, change...) }

// lanes returns n lanes with the same interval, one after the other. change alters some of them.
func lanes(n int, every time.Duration, pages int64, change ...func(i int, l *Lane)) []Lane {
	all := make([]Lane, n)
	for i := range all {
		all[i] = Lane{Pages: pages, Weight: 1, Lane: schedule.Lane{
			LaneID:   schedule.LaneID{Job: "trending", Region: fmt.Sprintf("R%d", i)},
			Schedule: parse(every), Offset: time.Duration(i) * every / time.Duration(n)}}
		for _, f := range change {
			f(i, &all[i])
		}
	}
	return all
}

func parse(every time.Duration) *schedule.Schedule {
	s, err := schedule.Parse("@every "+every.String(), time.UTC)
	if err != nil {
		panic(err)
	}
	return s
}

func weights(w ...int64) func(int, *Lane) {
	return func(i int, l *Lane) { l.Weight = w[i%len(w)] }
}

// log holds charges, to compute by brute force what a limit leaves.
type log struct {
	at, units []int64
}

func (l *log) left(limit quota.Limit, at int64, soon time.Duration) int64 {
	from := at + soon.Microseconds() - limit.Window.Length.Microseconds()
	if limit.Window.IsCalendar() {
		start, _ := limit.Window.Bounds(moment(at))
		from = start.UnixMicro() - 1
	}
	left := limit.Cap(false)
	for i := len(l.at) - 1; i >= 0 && l.at[i] > from; i-- {
		left -= l.units[i]
	}
	return left
}

// price is the price of a page.
var price = []quota.Cost{{Bucket: quota.DefaultBucket, Units: 1}}

func (s scene) rule() Rule { return Rule{s.lanes, price, s.limits, utc} }

func (s scene) play() played {
	type event struct {
		at   int64
		lane int
	}
	var events []event
	from := midnight.Add(s.start)
	to := from.Add(time.Duration(s.days) * 24 * time.Hour)
	for i, l := range s.lanes {
		for t := range l.Ticks(from.Add(-time.Nanosecond), to) {
			events = append(events, event{t.At.UnixMicro(), i})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	n := len(s.lanes)
	p := played{runs: make([]int, n), waits: make([]time.Duration, n),
		first: make([]time.Duration, n), perDay: make([]int, s.days+2)}
	last := make([]time.Time, n)
	book := s.rule().Begin()
	var charged log
	left := func(at int64) func(int) int64 {
		return func(i int) int64 { return max(0, charged.left(s.limits[i], at, Soon)) }
	}
	for _, e := range events {
		if !book.Admit(e.lane, e.at, left(e.at)).Run {
			continue
		}
		units := s.lanes[e.lane].Pages
		exceeds := func(l quota.Limit) bool { return charged.left(l, e.at, 0) < units }
		if slices.ContainsFunc(s.limits, exceeds) {
			p.denied++
			continue
		}
		charged.at, charged.units = append(charged.at, e.at), append(charged.units, units)
		book.Charge(e.lane, e.at, units)
		at := moment(e.at)
		if p.runs[e.lane]++; p.runs[e.lane] == 1 {
			p.first[e.lane] = at.Sub(from)
		} else {
			p.waits[e.lane] = max(p.waits[e.lane], at.Sub(last[e.lane]))
		}
		last[e.lane] = at
		p.perDay[int(at.Sub(midnight)/(24*time.Hour))]++
	}
	return p
}

func (p played) all() (n int) {
	for _, runs := range p.runs {
		n += runs
	}
	return n
}

func (p played) String() string {
	longest := make([]string, len(p.waits))
	for i, w := range p.waits {
		longest[i] = fmt.Sprintf("%.1f", w.Hours())
	}
	return fmt.Sprintf("%4d runs, by lane %v, longest waits in hours %v, days %v, denied %d",
		p.all(), p.runs, longest, p.perDay[:min(10, len(p.perDay))], p.denied)
}

// unfair lists the unfair results in a play of steady lanes.
func (p played) unfair(runs int, parts []int64, tick time.Duration) (complaints []string) {
	complain := func(format string, args ...any) {
		complaints = append(complaints, fmt.Sprintf(format, args...))
	}
	if 100*p.all() < 99*runs {
		complain("%d runs of %d", p.all(), runs)
	}
	if largest, least := slices.Max(p.runs), slices.Min(p.runs); parts == nil && largest-least > 2 {
		complain("equal lanes run between %d and %d times", least, largest)
	}
	whole := int64(len(p.runs))
	if parts != nil {
		whole = 0
		for _, part := range parts {
			whole += part
		}
	}
	for i, n := range p.runs {
		part := 1.0 / float64(whole)
		if parts != nil {
			part = float64(parts[i]) / float64(whole)
		}
		fair := float64(p.all()) * part
		if off := math.Abs(float64(n) - fair); off > 0.03*fair && off > 1 {
			complain("R%d runs %d times, its share is %.1f", i, n, fair)
		}
		interval := time.Duration(float64(thirty) / (float64(runs) * part))
		if p.waits[i] > 2*interval+tick {
			complain("R%d waits %s, its interval is %s", i, p.waits[i], interval)
		}
	}
	return complaints
}

// rate returns a lane's average runs a day.
func (p played) rate(lane, days int) float64 { return float64(p.runs[lane]) / float64(days) }

func drawScene(t *rapid.T) scene {
	draw := func(what string, low, high int64) int64 {
		return rapid.Int64Range(low, high).Draw(t, what)
	}
	every := rapid.SampledFrom([]time.Duration{10 * time.Minute, half, 5 * time.Hour})
	s := scene{lanes: lanes(int(draw("lanes", 1, 5)), every.Draw(t, "every"), 1,
		func(_ int, l *Lane) {
			l.Pages, l.Weight = draw("pages", 0, 9), draw("weight", 0, 3)
			l.Priority, l.Floor = draw("priority", 0, 1), draw("floor", 0, 20)
		})}
	units := draw("units", 0, 400)
	limits := [][]quota.Limit{{day(units)}, {sliding(units)}, {day(units), sliding(units + 10)}}
	s.limits = rapid.SampledFrom(limits).Draw(t, "limits")
	return s
}
