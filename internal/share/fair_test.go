package share

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

var midnight = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

var utc = quota.Window{Calendar: "day", Zone: time.UTC}

var (
	both    = []quota.Limit{sliding(100), day(100)}
	tenfold = []quota.Limit{sliding(1000), day(1000)}
	threes  = []int64{1, 2, 3, 1, 2, 3, 1, 2}
)

// steady lists schedules that want more than their limits allow, over 30 days.
var steady = []struct {
	name  string
	scene scene
	runs  int     // number of whole runs the limits allow
	parts []int64 // the lanes' shares of the runs; nil for equal ones
}{
	{"24h and day", scene{eight(), both, 0, 30}, 750, nil},
	{"24h and day, from noon", scene{eight(), both, 12 * time.Hour, 30}, 750, nil},
	{"day", scene{eight(), both[1:], 0, 30}, 750, nil},
	{"24h", scene{eight(), both[:1], 0, 30}, 750, nil},
	{"one lane", scene{lanes(1, half, 4), both, 0, 30}, 750, nil},
	{"all at once", scene{eight(func(_ int, l *Lane) { l.Offset = 0 }), both, 0, 30}, 750, nil},
	{"weights, 24h and day", scene{eight(weights(1, 2, 3)), both, 0, 30}, 750, threes},
	{"weights, day", scene{eight(weights(1, 2, 3)), both[1:], 0, 30}, 750, threes},
	{"weights, every 10 minutes", scene{lanes(8, 10*time.Minute, 4, weights(1, 2, 3)),
		tenfold, 0, 30}, 7500, threes},
	{"steep weights, every 10 minutes", scene{lanes(5, 10*time.Minute, 4, weights(1, 2, 4, 8, 16)),
		tenfold, 0, 30}, 7500, []int64{1, 2, 4, 8, 16}},
	{"every minute", scene{lanes(1, time.Minute, 1), tenfold, 0, 3}, 3000, nil},
	{"runs that leave a rest", scene{lanes(5, half, 15), both, 0, 30}, 180, nil},
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

// BenchmarkFair prints the figures of docs/daemon.md.
func BenchmarkFair(b *testing.B) {
	for b.Loop() {
		for _, s := range steady {
			p := s.scene.play()
			fmt.Printf("%-26s %s\n", s.name, p)
		}
	}
}

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
		{"a floor is whole", // of 100 units 40 are its floor; the others share the rest
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
		// one lane ticks all day, the others in eight hours only
		{"ticks in eight hours of the day",
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

// TestFair_FirstRound: on the first day every lane runs once, at its first tick with free units,
// before any lane runs twice.
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

// TestFair_ManyLanes: lanes take turns even if each gets less than one run in the three days that
// a decision looks back.
func TestFair_ManyLanes(t *testing.T) {
	p := scene{lanes: lanes(110, half, 4), limits: both, days: 30}.play()
	if least, largest := slices.Min(p.runs), slices.Max(p.runs); least < 5 || largest > least+2 {
		t.Errorf("between %d and %d runs, of 750 for 110 lanes", least, largest)
	}
}

// TestFair_Newcomer: a lane that has never run goes first as soon as the units for its run are
// free.
func TestFair_Newcomer(t *testing.T) {
	s := scene{lanes: eight(), limits: both[:1]}
	book := s.rule().Begin()
	for i := range 7 { // all lanes but the last ran an interval ago
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

// TestFair_Restart: a book rebuilt from the charges decides the same as the original.
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
				d := old.Admit(lane, at, left)
				rebuilt := rule.Begin()
				for _, c := range charges {
					if c.at >= at-memory-int64(24*time.Hour/time.Microsecond) {
						rebuilt.Charge(c.lane, c.at, c.units)
					}
				}
				again := rebuilt.Admit(lane, at, left)
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

// TestAdmit_ClockJumps: charges at far-off times neither delay a decision nor count in it.
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

// TestAdmit_TicksBetweenMicroseconds: two clocks may differ by any number of nanoseconds.
func TestAdmit_TicksBetweenMicroseconds(t *testing.T) {
	// 10 minutes divided by 11 is not a whole number of µs
	s := scene{lanes: lanes(11, 10*time.Minute, 4), limits: both, days: 2}
	p := s.play()
	if p.all() < 49 || slices.Min(p.runs) < 4 {
		t.Error(p)
	}
}

// TestShares_TooLarge: a share that is too small for one run shows as 0.
func TestShares_TooLarge(t *testing.T) {
	s := scene{lanes: lanes(2, time.Hour, 4, func(i int, l *Lane) { l.Pages = int64(4 + 196*i) }),
		limits: both[:1]}
	book := s.rule().Begin()
	shares, _ := book.Shares(midnight.UnixMicro(), func(int) int64 { return 100 })
	if len(shares) != 2 || shares[0].Entitled != 96 || shares[1].Entitled != 0 {
		t.Errorf("%+v", shares)
	}
}

func TestDecision_String(t *testing.T) {
	l := &Lane{Lane: schedule.Lane{LaneID: schedule.LaneID{Region: "BR"}}, Weight: 2}
	due, hour := midnight.Add(90*time.Minute), time.Hour
	for _, c := range []struct {
		d    Decision
		want string
	}{
		{Decision{Run: true}, "runs: enough is left for every coming tick"},
		{Decision{Run: true, Short: true, Due: due}, "runs: it gets all it wants (weight 2)"},
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
