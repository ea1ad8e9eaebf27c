package plan

import (
	"testing"
	"time"
)

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

// TestByClock: spending that follows the clock is predicted for tomorrow, and is not taken for a
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
