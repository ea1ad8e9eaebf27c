package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestFewLargeCharges: a few large charges do not make the high rate absurd, at any age.
func TestFewLargeCharges(t *testing.T) {
	for _, window := range []string{"day", "month", "24h"} {
		for n := range int64(5) {
			for _, ago := range []time.Duration{5 * time.Minute, time.Hour, 5 * time.Hour} {
				b := bucketAt(t, "2026-11-21 20:00:00", "50000000 "+window, "")
				from := b.At.Add(-ago - time.Duration(n+1)*7*time.Minute)
				b.Spent = flow(from, b.At.Add(-ago), 7*time.Minute, 400_000)
				most := 3.1 * 400_000 * float64(n+1) / quiet.Hours()
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
		_, likely, high := h.loads(18 * hour)
		if h.incidents != incidents || slices.Max(likely) > 50 ||
			(slices.Max(high) > 50) != (incidents > 0) {
			t.Errorf("%d incidents: likely %v, high %v", h.incidents, likely, high)
		}
	}
}

// TestEnough: 23 ticks of two lanes want 184 units; with one less the last run is cut off.
func TestEnough(t *testing.T) {
	for units, want := range map[int]bool{184: true, 183: false} {
		in := bucketAt(t, "2026-11-21 20:00:01", fmt.Sprint(units, " day"), "*/30 * * * * US BR")
		if got := newOutlook(in).suffices(nil); got != want {
			t.Errorf("%d units are enough: %v, want %v", units, got, want)
		}
	}
}
