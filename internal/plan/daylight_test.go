package plan

import (
	"testing"
	"time"
)

// TestDaylight: the day in Los Angeles has 23 hours on 8 March and 25 on 1 November. Its runs and
// its reset follow the wall clock: from 01:00 to 23:00; 02:00 becomes 03:00 when it does not
// exist, and a repeated 01:00 counts once.
func TestDaylight(t *testing.T) {
	for _, test := range []struct {
		start string
		hours float64
		runs  int64
	}{
		{"2026-03-07 08:00:00", 24, 23}, {"2026-03-08 08:00:00", 23, 22},
		{"2026-11-01 07:00:00", 25, 23},
	} {
		b := bucketAt(t, test.start, "1000 day", "CRON_TZ=America/Los_Angeles 0 * * * * BR")
		f := ForecastOf(b)
		if f.ResetAt.Sub(b.At).Hours() != test.hours || f.Scheduled.Runs != test.runs ||
			f.Verdict != Lasts {
			t.Errorf("%v h, %d runs: %s", f.ResetAt.Sub(b.At).Hours(), f.Scheduled.Runs, f.Text())
		}
		// 40 an hour and 4 for each run: the last run of the day gets the units that the earlier
		// hours left.
		b.Spent = flow(b.At.Add(-24*time.Hour), b.At.Add(-time.Second), 15*time.Minute, 10)
		b.Limits[0].Units = int64(40*(test.hours-2)) + 4*(test.runs-2)
		f = ForecastOf(b)
		if before := f.ResetAt.Sub(f.DryAt); f.Verdict != RunsDry || before < 20*time.Minute ||
			before > 5*time.Hour {
			t.Errorf("%v: %s", test.start, f.Text())
		}
	}
}

// TestSlidingOnTheLongDay: on the day of 25 hours, the spending of its first hour leaves a
// sliding window an hour before the reset.
func TestSlidingOnTheLongDay(t *testing.T) {
	for limits, want := range map[string]string{
		"100 24h": "default is exhausted (default 24h) until 2026-11-02 07:30Z",
		"100 day": "default is exhausted (default day America/Los_Angeles) " +
			"until 2026-11-02 08:00Z: BR will miss 1 run at 2026-11-02 07:45Z",
	} {
		b := bucketAt(t, "2026-11-01 13:00:00", limits, "45 7 * * * BR",
			spent(clock(t, "2026-11-01 07:30:00"), 100))
		if got := ForecastOf(b).Text(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
