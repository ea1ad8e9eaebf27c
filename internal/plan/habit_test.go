package plan

import (
	"slices"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestUnscheduled: recent spending continues; the day in Los Angeles has 12 more hours.
func TestUnscheduled(t *testing.T) {
	now := clock(t, "2026-11-21 20:00:00")
	start := clock(t, "2026-11-21 08:00:00")
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	rest := func(units int64) []quota.Spent { return spent(start, units) }
	steady := flow(start, now, 5*time.Minute, 10) // 120 an hour, 1,440 by now
	last := func(d, every time.Duration, units int64) []quota.Spent {
		return flow(before(d), now, every, units)
	}
	burst := func(after time.Duration) []quota.Spent {
		return flow(start.Add(after), start.Add(after+10*time.Minute), time.Minute, 30)
	}
	early := func(units int64) []quota.Spent {
		return flow(start, before(6*time.Hour), 5*time.Minute, units)
	}
	const in5min = 5 * time.Minute
	backfill := []quota.Reservation{{Units: 1000, Drawn: 600, Left: 400,
		CreatedAt: before(2 * time.Hour), ExpiresAt: now.Add(time.Hour)}}
	for _, test := range []struct {
		name      string
		entries   []quota.Spent
		held      []quota.Reservation
		low, high float64 // of the rate, per hour
		dry       string  // "" if it does not run dry
		within    time.Duration
	}{
		{"steady, and enough", join(steady, rest(6000)), nil, 110, 130, "", 0},
		{"steady, and not enough", join(steady, rest(6980)), nil, 110, 130, "2026-11-22 05:00:00",
			45 * time.Minute},
		{"a rate that has fallen", join(early(60), last(6*time.Hour, in5min, 5)), nil, 50, 70, "",
			0},
		{"one that has fallen by half counts less and less",
			join(early(20), last(6*time.Hour, in5min, 10)),
			nil, 125, 165, "", 0},
		{"bursts come again", join(flow(start, now, time.Hour, 5), burst(time.Hour),
			burst(5*time.Hour), burst(9*time.Hour)),
			nil, 50, 120, "", 0},
		{"one large charge is no rate", join(steady, last(4*time.Minute, 3*time.Minute, 800),
			rest(4000)),
			nil, 110, 250, "", 0},
		{"a job that ran away an hour ago",
			join(steady, last(time.Hour, time.Minute, 40), rest(3000)),
			nil, 110, 2700, "2026-11-21 21:02:00", 25 * time.Minute},
		{"a job that was stopped", join(steady,
			flow(before(4*time.Hour), before(2*time.Hour), time.Minute, 30), rest(2300)),
			nil, 100, 150, "", 0},
		{"what is drawn was set aside", join(steady, last(2*time.Hour, in5min, 25), rest(5400)),
			backfill, 100, 140, "", 0},
		{"the schedule's own runs", rest(9000), nil, 0, 0, "", 0},
	} {
		b := bucketAt(t, "2026-11-21 20:00:00", "9500 day", "0 7 * * * BR", test.entries)
		b.Reservations = test.held
		f := ForecastOf(b)
		if (f.Verdict == Lasts) != (test.dry == "") {
			t.Errorf("%s: %s, want dry at %q", test.name, f.Text(), test.dry)
		}
		if test.dry != "" && f.DryAt.Sub(clock(t, test.dry)).Abs() > test.within {
			t.Errorf("%s: dry %v, want %s", test.name, f.DryAt, test.dry)
		}
		r := f.Rate
		if r.Likely < test.low || r.Likely > test.high || r.Low > r.Likely || r.High < r.Likely {
			t.Errorf("%s: rate %v, want %v to %v", test.name, r, test.low, test.high)
		}
		after := f.Latest.IsZero() || f.Latest.After(f.DryAt)
		if test.dry != "" && (!f.Earliest.Before(f.DryAt) || !after) {
			t.Errorf("%s: %v is not between %v and %v", test.name, f.DryAt, f.Earliest, f.Latest)
		}
	}
}

// TestSurge: a surge counts as a burst for the usual length of bursts, and then as a runaway job.
func TestSurge(t *testing.T) {
	now := clock(t, "2026-11-21 20:00:00")
	before := 0.0
	for _, minutes := range []int{10, 20, 30, 40, 60, 120} {
		d := time.Duration(minutes) * time.Minute
		b := bucketAt(t, "2026-11-21 20:00:00", "9500 day", "",
			flow(now.Add(-20*time.Hour), now, 10*time.Minute, 10),
			flow(now.Add(-d), now, time.Minute, 20))
		h := newHabit(b)
		if bins := minutes / 10; minutes > 10 && h.surge != bins || minutes == 10 && h.surge != 0 {
			t.Errorf("%v: a surge of %d bins", d, h.surge)
		}
		if h.surge > 0 && h.runaway <= before {
			t.Errorf("%v: %.2f likely to have run away, not more than %.2f", d, h.runaway, before)
		}
		before = h.runaway
	}
	if before < 0.9 {
		t.Errorf("two hours: %.2f", before)
	}
}

// TestFewLargeCharges: a few large charges do not make the high rate absurd, at any age.
func TestFewLargeCharges(t *testing.T) {
	for _, window := range []string{"day", "month", "24h"} {
		for n := range int64(5) {
			for _, ago := range []time.Duration{5 * time.Minute, time.Hour, 5 * time.Hour} {
				b := bucketAt(t, "2026-11-21 20:00:00", "50000000 "+window, "")
				from := b.At.Add(-ago - time.Duration(n+1)*7*time.Minute)
				b.Spent = flow(from, b.At.Add(-ago), 7*time.Minute, 400_000)
				most := 3.1 * 400_000 * float64(n+1) / assumedQuiet.Hours()
				if r := ForecastOf(b).Rate; r.High > most+1 || r.Likely > r.High || r.Likely == 0 {
					t.Errorf("%s, %d charges %v ago: %v, want at most %.0f", window, n+1, ago, r, most)
				}
			}
		}
	}
}

// TestCorrections: entries by adjust and reconcile do not count as past spending.
func TestCorrections(t *testing.T) {
	b := bucketAt(t, "2026-11-21 20:00:00", "9500 day", "")
	b.Spent = flow(b.At.Add(-24*time.Hour), b.At, 10*time.Minute, 10)
	want := ForecastOf(b).Rate
	for i, source := range []string{"adjust", "reconcile"} {
		b.Spent = join(b.Spent, []quota.Spent{{At: b.At.Add(-time.Duration(i+1) * time.Hour),
			Units: 1500, Charges: 1, Labels: quota.Labels{quota.LabelSource: source}}})
	}
	if got := ForecastOf(b).Rate; got != want {
		t.Errorf("rate %v with corrections, %v without", got, want)
	}
}

// TestIncidents: after earlier runaway jobs, the high load includes another one, and the likely
// load does not.
func TestIncidents(t *testing.T) {
	now := clock(t, "2026-11-21 14:00:00")
	steady := flow(now.Add(-60*time.Hour), now, 10*time.Minute, 5)
	ran := flow(now.Add(-28*time.Hour), now.Add(-25*time.Hour), time.Minute, 40)
	for incidents, spent := range [][]quota.Spent{nil, ran} {
		h := newHabit(bucketAt(t, "2026-11-21 14:00:00", "12000 day", "", steady, spent))
		_, likely, high := h.loads(18 * hourBins)
		if h.incidents != incidents || slices.Max(likely) > 50 ||
			(slices.Max(high) > 50) != (incidents > 0) {
			t.Errorf("%d incidents: likely %v, high %v", h.incidents, likely, high)
		}
	}
}

// office returns three days of a user who works from 16:00Z to midnight at 600 units an hour,
// until a moment of the last day.
func office(t *testing.T, until string) Bucket {
	b := bucketAt(t, "2026-11-21 "+until+":00", "9500 day", "")
	for _, day := range []string{"2026-11-19", "2026-11-20", "2026-11-21"} {
		from := clock(t, day+" 16:00:00")
		to := from.Add(8 * time.Hour)
		b.Spent = append(b.Spent, flow(from, to, time.Minute, 10)...)
	}
	b.Spent = join(b.Spent, flow(b.At.Add(-60*time.Hour), b.At, 10*time.Minute, 10))
	for len(b.Spent) > 0 && b.Spent[len(b.Spent)-1].At.After(b.At) {
		b.Spent = b.Spent[:len(b.Spent)-1]
	}
	return b
}

// TestByClock: spending that follows the clock is predicted for tomorrow, and does not count as a
// runaway job at noon.
func TestByClock(t *testing.T) {
	for _, test := range []struct {
		at        string
		low, high float64 // units an hour, until 08:00Z
	}{
		{"13:00", 250, 370}, // 19 h of 60, and 8 h of 600
		{"20:00", 220, 310}, // 12 h of 60, and 4 h of 600
		{"23:50", 50, 90},
	} {
		b := office(t, test.at)
		if h := newHabit(b); h.surge != 0 {
			t.Errorf("%s: a surge of %d", test.at, h.surge)
		}
		if f := ForecastOf(b); f.Rate.Likely < test.low || f.Rate.Likely > test.high {
			t.Errorf("%s: rate %v, want %v to %v", test.at, f.Rate, test.low, test.high)
		}
	}
}
