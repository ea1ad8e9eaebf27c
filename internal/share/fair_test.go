package share

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// scene is lanes that tick for some days under limits.
type scene struct {
	lanes  []Lane
	limits []quota.Limit
	start  time.Duration // after midnight
	days   int
	others int // charges a day of 3 units, at random
}

// played is what came of it.
type played struct {
	runs   []int
	waits  []time.Duration // the longest of each lane, from its first run on
	first  []time.Duration // from the beginning to its first run
	spent  int64           // by the lanes
	perDay []int           // runs
	denied int             // runs that were admitted and did not fit
}

var midnight = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

var utc = quota.Window{Calendar: "day", Zone: time.UTC}

func day(units int64) quota.Limit {
	return quota.Limit{Bucket: quota.DefaultBucket, Units: units, Window: utc}
}

func sliding(units int64) quota.Limit {
	limit := day(units)
	limit.Window = quota.Sliding(24 * time.Hour)
	return limit
}

func eight(change ...func(i int, l *Lane)) []Lane { return lanes(8, half, 4, change...) }

// lanes are n of them that tick so often, one after the other; change makes some of them different.
func lanes(n int, every time.Duration, pages int64, change ...func(i int, l *Lane)) []Lane {
	all := make([]Lane, n)
	for i := range all {
		all[i] = Lane{Pages: pages, Weight: 1, Lane: schedule.Lane{
			Job: "trending", Region: fmt.Sprintf("R%d", i),
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

// log is charges, to say by brute force what a limit leaves.
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

func (s scene) rule() Rule { return Rule{s.lanes, 1, s.limits, utc} }

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
	random := rand.New(rand.NewPCG(1, 2))
	for range s.others * s.days {
		at := from.UnixMicro() + random.Int64N(to.Sub(from).Microseconds())
		events = append(events, event{at, Others})
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
		units := int64(3)
		if e.lane != Others {
			if !book.Admit(e.lane, e.at, left(e.at)).Run {
				continue
			}
			units = s.lanes[e.lane].Pages
		}
		exceeds := func(l quota.Limit) bool { return charged.left(l, e.at, 0) < units }
		if slices.ContainsFunc(s.limits, exceeds) {
			if e.lane != Others {
				p.denied++
			}
			continue
		}
		charged.at, charged.units = append(charged.at, e.at), append(charged.units, units)
		book.Charge(e.lane, e.at, units)
		if e.lane == Others {
			continue
		}
		at := moment(e.at)
		if p.runs[e.lane]++; p.runs[e.lane] == 1 {
			p.first[e.lane] = at.Sub(from)
		} else {
			p.waits[e.lane] = max(p.waits[e.lane], at.Sub(last[e.lane]))
		}
		last[e.lane] = at
		p.spent += units
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

var (
	both    = []quota.Limit{sliding(100), day(100)}
	tenfold = []quota.Limit{sliding(1000), day(1000)}
	threes  = []int64{1, 2, 3, 1, 2, 3, 1, 2}
)

// steady is schedules that want more than the limits allow, on 30 days.
var steady = []struct {
	name  string
	scene scene
	runs  int     // whole runs that the limits allow
	parts []int64 // in which the lanes share them; nil: equally
}{
	{"24h and day", scene{eight(), both, 0, 30, 0}, 750, nil},
	{"24h and day, from noon", scene{eight(), both, 12 * time.Hour, 30, 0}, 750, nil},
	{"day", scene{eight(), both[1:], 0, 30, 0}, 750, nil},
	{"24h", scene{eight(), both[:1], 0, 30, 0}, 750, nil},
	{"one lane", scene{lanes(1, half, 4), both, 0, 30, 0}, 750, nil},
	{"all at once", scene{eight(func(_ int, l *Lane) { l.Offset = 0 }), both, 0, 30, 0}, 750, nil},
	{"weights, 24h and day", scene{eight(weights(1, 2, 3)), both, 0, 30, 0}, 750, threes},
	{"weights, day", scene{eight(weights(1, 2, 3)), both[1:], 0, 30, 0}, 750, threes},
	{"weights, every 10 minutes", scene{lanes(8, 10*time.Minute, 4, weights(1, 2, 3)),
		tenfold, 0, 30, 0}, 7500, threes},
	{"steep weights, every 10 minutes", scene{lanes(5, 10*time.Minute, 4, weights(1, 2, 4, 8, 16)),
		tenfold, 0, 30, 0}, 7500, []int64{1, 2, 4, 8, 16}},
	{"every minute", scene{lanes(1, time.Minute, 1), tenfold, 0, 3, 0}, 3000, nil},
	{"runs that leave a rest", scene{lanes(5, half, 15), both, 0, 30, 0}, 180, nil},
}

// fair says what is unfair in a play of steady lanes.
func (p played) unfair(runs int, parts []int64, tick time.Duration) (complaints []string) {
	complain := func(format string, args ...any) {
		complaints = append(complaints, fmt.Sprintf(format, args...))
	}
	if 100*p.all() < 99*runs {
		complain("%d runs of %d", p.all(), runs)
	}
	if most, least := slices.Max(p.runs), slices.Min(p.runs); parts == nil && most-least > 2 {
		complain("equal lanes run between %d and %d times", least, most)
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

const thirty, half = 30 * 24 * time.Hour, 30 * time.Minute

func TestFair(t *testing.T) {
	for _, s := range steady {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p := s.scene.play()
			tick := s.scene.lanes[0].Schedule.Interval()
			for _, complaint := range p.unfair(s.runs, s.parts, tick) {
				t.Error(complaint)
			}
			if t.Failed() {
				t.Log(p)
			}
			if p.denied > 0 {
				t.Errorf("%d runs were admitted and did not fit", p.denied)
			}
		})
	}
}

// BenchmarkFair prints the table of docs/daemon.md.
func BenchmarkFair(b *testing.B) {
	for b.Loop() {
		for _, s := range steady {
			p := s.scene.play()
			fmt.Printf("%-26s %s\n", s.name, p)
		}
	}
}

// rate is runs a day in the long run.
func (p played) rate(lane, days int) float64 { return float64(p.runs[lane]) / float64(days) }

func TestFair_Claims(t *testing.T) {
	second := func(i int, l *Lane) { l.Priority = int64(i % 2) }
	floored := func(i int, l *Lane) { l.Floor = int64(40 * (1 - min(i, 1))) }
	first := func(pages int64) func(int, *Lane) {
		return func(i int, l *Lane) {
			if i == 0 {
				l.Pages = pages
			}
		}
	}
	for _, c := range []struct {
		name  string
		scene scene
		want  []float64 // runs a day
		off   float64
	}{
		{"a priority gets all it wants first",
			scene{lanes: lanes(3, 4*time.Hour, 4, second), limits: []quota.Limit{sliding(40)}},
			[]float64{2, 6, 2}, 0.1},
		{"a floor is whole", // 100 units: 40 are its floor, and the others share the rest
			scene{lanes: lanes(5, half, 4, floored), limits: both},
			[]float64{10, 3.75, 3.75, 3.75, 3.75}, 0.15},
		{"a weight of 0 gets what the others leave",
			scene{lanes: lanes(3, 6*time.Hour, 4, weights(0, 1, 1)),
				limits: []quota.Limit{day(40)}},
			[]float64{2, 4, 4}, 0.1},
		{"one that wants less leaves the rest to the others",
			scene{lanes: lanes(5, half, 4, func(i int, l *Lane) {
				if i == 0 {
					l.Schedule = parse(24 * time.Hour)
				}
			}), limits: both},
			[]float64{1, 6, 6, 6, 6}, 0.2},
		{"ticks in eight hours of the day", // all of them beside one that ticks always
			scene{lanes: lanes(4, half, 4, func(i int, l *Lane) {
				if i > 0 {
					l.Schedule, _ = schedule.Parse("*/10 9-16 * * *", time.UTC)
				}
			}), limits: both},
			[]float64{6.25, 6.25, 6.25, 6.25}, 0.2},
		{"one whose run takes more than the limit leaves all to the others",
			scene{lanes: lanes(4, half, 4, first(200)), limits: both},
			[]float64{0, 8.33, 8.33, 8.33}, 0.1},
		{"one that costs twice as much runs half as often",
			scene{lanes: lanes(4, half, 4, first(8)), limits: both},
			[]float64{3.125, 6.25, 6.25, 6.25}, 0.2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.scene.days = 30
			p := c.scene.play()
			for i, want := range c.want {
				if got := p.rate(i, 30); math.Abs(got-want) > c.off {
					t.Errorf("R%d runs %.2f times a day, want %.2f\n%s", i, got, want, p)
				}
			}
		})
	}
}

// TestFair_FirstRound: on the first day everybody runs once before anybody runs twice, at its first
// tick while units are free.
func TestFair_FirstRound(t *testing.T) {
	for _, start := range []time.Duration{0, 9 * time.Hour, 20 * time.Hour} {
		p := scene{lanes: eight(), limits: both, start: start, days: 2}.play()
		for i, first := range p.first {
			if first > half {
				t.Errorf("R%d first runs after %s when it begins at %s", i, first, start)
			}
		}
	}
}

// TestFair_ManyLanes: lanes that share less than a run in three days each, which is as far as a
// decision looks back, take turns all the same.
func TestFair_ManyLanes(t *testing.T) {
	p := scene{lanes: lanes(110, half, 4), limits: both, days: 30}.play()
	if least, most := slices.Min(p.runs), slices.Max(p.runs); least < 6 || most > least+2 {
		t.Errorf("between %d and %d runs, of 750 for 110 lanes", least, most)
	}
}

// TestFair_Newcomer: a lane that has never run goes before those that have, as soon as its cost is
// free.
func TestFair_Newcomer(t *testing.T) {
	s := scene{lanes: eight(), limits: both[:1]}
	book := s.rule().Begin()
	for i := range 7 { // all but the last, an interval ago
		book.Charge(i, midnight.Add(time.Duration(i)*time.Hour).UnixMicro(), 4)
	}
	at := midnight.Add(23 * time.Hour)
	for units, want := range map[int64][2]bool{3: {}, 4: {false, true}, 7: {false, true}} {
		left := func(int) int64 { return units }
		if first := book.Admit(0, at.UnixMicro(), left); first.Run != want[0] {
			t.Errorf("%d units: %s", units, first)
		}
		if newcomer := book.Admit(7, at.UnixMicro(), left); newcomer.Run != want[1] {
			t.Errorf("%d units: %s", units, newcomer)
		}
	}
}

// TestFair_Restart: a book that is written anew from what was charged decides as the old one.
func TestFair_Restart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		rule := s.rule()
		old := rule.Begin()
		type charge struct {
			lane      int
			at, units int64
		}
		var charges []charge
		at := midnight.UnixMicro()
		for range rapid.IntRange(1, 60).Draw(t, "charges") {
			at += rapid.Int64Range(0, 3*int64(time.Hour/time.Microsecond)).Draw(t, "later")
			lane := rapid.IntRange(Others, len(s.lanes)-1).Draw(t, "lane")
			units := rapid.Int64Range(1, 40).Draw(t, "units")
			left := func(int) int64 { return units }
			if lane != Others {
				d := new(Book).CopyOf(old).Admit(lane, at, left)
				anew := rule.Begin()
				for _, c := range charges {
					if c.at >= at-memory-int64(24*time.Hour/time.Microsecond) {
						anew.Charge(c.lane, c.at, c.units)
					}
				}
				again := anew.Admit(lane, at, left)
				want := d
				want.Lane, want.Short = again.Lane, again.Short
				if again != want {
					t.Fatalf("at %s:\n%s\n%s", moment(at), d, again)
				}
				if d.Run && d.Short && d.Cost > units {
					t.Fatalf("%d units are left: %s", units, d)
				}
			}
			old.Charge(lane, at, units)
			charges = append(charges, charge{lane, at, units})
		}
	})
}

// TestAdmit_ClockJumps: charges from another age neither hold a decision up nor count in it.
func TestAdmit_ClockJumps(t *testing.T) {
	s := scene{lanes: lanes(1, time.Minute, 1), limits: both}
	book := s.rule().Begin()
	left := func(int) int64 { return 90 }
	for _, years := range []int{-500, 0, 500} {
		at := midnight.AddDate(years, 0, 0)
		book.Charge(0, at.UnixMicro(), 1)
		if soon := book.Admit(0, at.Add(time.Minute).UnixMicro(), left); !soon.Short || soon.Run {
			t.Errorf("a minute after %v: %s", at, soon)
		}
		late := book.Admit(0, at.Add(1000*time.Hour).UnixMicro(), left)
		if !late.Short || !late.Run {
			t.Errorf("weeks after %v: %s", at, late)
		}
	}
}

// TestAdmit_TicksBetweenMicroseconds: two clocks are apart by any number of nanoseconds.
func TestAdmit_TicksBetweenMicroseconds(t *testing.T) {
	// 10 minutes are no whole number of µs for each
	s := scene{lanes: lanes(11, 10*time.Minute, 4), limits: both, days: 2}
	p := s.play()
	if p.all() < 49 || slices.Min(p.runs) < 4 {
		t.Error(p)
	}
}

// TestShares_TooLarge: what a lane cannot run on is not shown as its share.
func TestShares_TooLarge(t *testing.T) {
	s := scene{lanes: lanes(2, time.Hour, 4, func(i int, l *Lane) { l.Pages = int64(4 + 196*i) }),
		limits: both[:1]}
	book := s.rule().Begin()
	shares, short := book.Shares(midnight.UnixMicro(), func(int) int64 { return 100 })
	if !short || shares.Lanes[0].Entitled != 96 || shares.Lanes[1].Entitled != 0 {
		t.Errorf("%v %+v", short, shares.Lanes)
	}
}

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

func TestDecision_String(t *testing.T) {
	l := &Lane{Lane: schedule.Lane{Region: "BR"}, Weight: 2}
	due, hour := midnight.Add(90*time.Minute), time.Hour
	for _, c := range []struct {
		d    Decision
		want string
	}{
		{Decision{Run: true}, "runs: enough is left for every tick to come"},
		{Decision{Run: true, Short: true, Due: due}, "runs: it gets all that it wants (weight 2)"},
		{Decision{Run: true, Short: true, Interval: hour},
			"runs: it has not run for days, or ever"},
		{Decision{Run: true, Short: true, Interval: hour, Due: due},
			"runs: a run every 1h0m0s, this one due at 01:30 UTC (weight 2)"},
		{Decision{Short: true, Interval: hour, Due: due, Free: 9, Cost: 4},
			"is left out: a run every 1h0m0s, the next due at 01:30 UTC (weight 2)"},
		{Decision{Short: true, Interval: hour, Due: due, Free: 3, Cost: 4},
			"is left out: a run takes 4 units, and 3 are left now"},
		{Decision{Short: true, Interval: hour, Due: due, Free: 9, Cost: 4, Ahead: 8},
			"is left out: 9 units are left, " +
				"and lanes that have waited longer need 8 of them (weight 2)"},
		{Decision{Short: true, Due: due, Free: 9, Cost: 4, Early: true},
			"is left out: the lanes together have used their units of the day until now " +
				"(weight 2)"},
		{Decision{Short: true, Interval: -1, Free: 2, Cost: 4},
			"is left out: a run takes 4 units, and 2 are left now"},
		{Decision{Short: true, Interval: -1, Free: 9, Cost: 4},
			"is left out: the others need all units (weight 2)"},
	} {
		c.d.Lane = l
		if got := c.d.String(); got != "BR "+c.want {
			t.Errorf("%q\nwant BR %q", got, c.want)
		}
	}
}
