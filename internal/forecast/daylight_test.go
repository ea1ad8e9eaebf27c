package forecast

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// The day in Los Angeles has 23 hours on 8 March and 25 on 1 November. Its runs and its reset
// follow the clock on the wall.
func TestDaylight(t *testing.T) {
	day := limit(t, 1000, "day")
	zone := day.Window.Zone
	hourly, err := schedule.Parse("0 * * * *", zone)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		year  int
		month time.Month
		day   int
		hours float64
		runs  int64 // 01:00 to 23:00; 02:00 is 03:00 where it does not exist, and 01:00 comes once where it comes twice
	}{
		{2026, time.March, 7, 24, 23}, {2026, time.March, 8, 23, 22}, {2026, time.November, 1, 25, 23},
	} {
		start := time.Date(test.year, test.month, test.day, 0, 0, 0, 0, zone)
		b := Bucket{Name: "default", Price: 1, At: start, Limits: []quota.Limit{day}, Lanes: []share.Lane{{Lane: schedule.Lane{Job: "trending", Region: "BR",
			Schedule: hourly}, Pages: 4}}}
		f := Of(b)
		if f.ResetAt.Sub(start).Hours() != test.hours || f.Scheduled.Runs != test.runs || f.Verdict != Lasts {
			t.Errorf("%v: %v h, %d runs, %s", start, f.ResetAt.Sub(start).Hours(), f.Scheduled.Runs, f.Verdict)
		}
		// 40 an hour and 4 for each run: the last run of the day finds what the hours before it
		// left.
		b.Spent = flow(start.Add(-24*time.Hour), start.Add(-time.Second), 15*time.Minute, 10)
		b.Limits[0].Units = int64(40*(test.hours-2)) + 4*(test.runs-2)
		f = Of(b)
		if before := f.ResetAt.Sub(f.DryAt); f.Verdict != RunsDry || before < 20*time.Minute || before > 5*time.Hour {
			t.Errorf("%v: %s", start, f.Text())
		}
	}
}

// On the day of 25 hours, what was spent in its first hour leaves a sliding window an hour before
// the reset.
func TestSlidingOnTheLongDay(t *testing.T) {
	midnight := clock(t, "2026-11-01 07:00:00") // the reset is at 08:00 on the 2nd
	for _, test := range []struct {
		window string
		want   string
	}{
		{"24h", "default is exhausted (default 24h) until 2026-11-02 07:30Z"},
		{"day", "default is exhausted (default day America/Los_Angeles) until 2026-11-02 08:00Z; 1 of 1 run is left out by its share"},
	} {
		b := Bucket{Name: "default", Price: 1, At: midnight.Add(6 * time.Hour), Limits: []quota.Limit{limit(t, 100, test.window)}, Reset: window(t, "day"),
			Spent: spent(midnight.Add(30*time.Minute), 100), Lanes: lanes(t, "45 7 * * *", "BR")}
		if got := Of(b).Text(); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.window, got, test.want)
		}
	}
}
