package forecast

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// The worked example of the package comment. The reset is at 08:00Z; its clock is that of Los
// Angeles.
func TestWorkedExample(t *testing.T) {
	start, noon := clock(t, "2026-11-21 08:00:00"), clock(t, "2026-11-21 20:00:00")
	b := Bucket{Name: "default", Price: 1, At: noon, Limits: []quota.Limit{limit(t, 9500, "day")}, Spent: spent(start, 8300),
		Lanes: lanes(t, "0 2-23/3 * * *", "US", "GB", "DE", "FR", "IN", "BR", "AU", "CA")}
	if f := Of(b); f.Verdict != Lasts || f.Chance != 0 || f.Scheduled.Units != 128-32 {
		t.Errorf("the schedule alone: %s, %+v", f.Text(), f.Scheduled)
	}
	often := b
	often.Lanes = lanes(t, "*/5 * * * *", "US", "GB", "DE", "FR", "IN", "BR", "AU", "CA")
	if got, want := Of(often).Text(), "default lasts to the reset, and the schedule does not fit in it: 844 of 1,144 runs are left out by their shares"; got != want {
		t.Errorf("every 5 minutes: %s", got)
	}
	besides := b
	besides.Spent = join(spent(start, 8300-1440), flow(start, noon, 5*time.Minute, 10))
	f := Of(besides)
	if f.Verdict != RunsDry || f.DryAt.Sub(clock(t, "2026-11-22 05:10:00")).Abs() > 20*time.Minute || f.Chance < 0.9 {
		t.Errorf("and 120 an hour besides: %s", f.Text())
	}
	aside := b
	aside.Reservations = []quota.Reservation{{Units: 1200, Left: 1200, CreatedAt: start, ExpiresAt: noon.Add(2 * time.Hour)}}
	if f := Of(aside); f.Verdict != Exhausted || !f.OpensAt.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("set aside: %s", f.Text())
	}
}
