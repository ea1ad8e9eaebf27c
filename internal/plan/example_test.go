package plan

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestWorkedExample checks the example in the package. The reset is at 08:00Z, midnight in Los
// Angeles.
func TestWorkedExample(t *testing.T) {
	start, noon := clock(t, "2026-11-21 08:00:00"), "2026-11-21 20:00:00"
	b := bucketAt(t, noon, "9500 day", "0 2-23/3 * * *"+regions, spent(start, 8300))
	if f := ForecastOf(b); f.Verdict != Lasts || !f.Earliest.IsZero() || f.Scheduled.Units != 128-32 {
		t.Errorf("the schedule alone: %s, %+v", f.Text(), f.Scheduled)
	}
	often := bucketAt(t, noon, "9500 day", "*/5 * * * *"+regions, spent(start, 8300))
	want := "default lasts to the reset, but the schedule does not fit: " +
		"US, GB and 6 more will miss 844 of 1,144 runs; to avoid it, set pages to 1"
	if got := ForecastOf(often).Text(); got != want {
		t.Errorf("every 5 minutes: %s", got)
	}
	besides := b
	besides.Spent = join(spent(start, 8300-1440), flow(start, b.At, 5*time.Minute, 10))
	f := ForecastOf(besides)
	if f.DryAt.Sub(clock(t, "2026-11-22 05:10:00")).Abs() > 20*time.Minute {
		t.Errorf("120 an hour in addition: %s", f.Text())
	}
	until := b.At.Add(2 * time.Hour)
	b.Reservations = []quota.Reservation{{Units: 1200, Left: 1200, CreatedAt: start,
		ExpiresAt: until}}
	if f := ForecastOf(b); f.Verdict != Exhausted || !f.OpensAt.Equal(until) {
		t.Errorf("with a reservation: %s", f.Text())
	}
}
