package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// TestAdviceOnPages: with no unscheduled spending, the advised number of pages loses nothing and
// one more loses something; without a loss there is no advice.
func TestAdviceOnPages(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := draws{r}.scenario(t)
		b.Reservations = nil
		f := ForecastOf(b)
		var pages int64
		switch n, _ := fmt.Sscanf(f.Advice, "set pages to %d", &pages); {
		case n == 1:
			if after := ForecastOf(b.fewer(pages)); after.Short() || after.Advice != "" {
				r.Fatalf("%s\nthen %s", f.Text(), after.Text())
			}
			if more := ForecastOf(b.fewer(pages + 1)); !more.Short() {
				r.Fatalf("%s\nalthough one more would do: %s", f.Text(), more.Text())
			}
		case f.Advice == changeSchedule, f.Advice == changeJobs:
			if one := ForecastOf(b.fewer(1)); !one.Short() {
				r.Fatalf("%s\nalthough one page would do: %s", f.Text(), one.Text())
			}
		case f.Advice != "" || !f.Short():
			if f.Advice != "" {
				r.Fatal(f.Text())
			}
		case f.Verdict == RunsDry || f.Verdict == Lasts:
			if one := ForecastOf(b.fewer(1)); !one.Short() {
				r.Fatalf("%s\nalthough one page would do: %s", f.Text(), one.Text())
			}
		}
	})
}

// TestAdviceOnCommands: --suggest changes only the schedules of regions, so the advice names it
// only if the commands alone fit.
func TestAdviceOnCommands(t *testing.T) {
	command := lanes(t, "0 * * * *", 1, 0, "")
	command[0].Price = []quota.Cost{{Bucket: quota.DefaultBucket, Units: 5}}
	regions := lanes(t, "*/5 * * * *", 1, 0, "US")
	for _, c := range []struct {
		units  int64
		lanes  []share.Lane
		advice string
	}{
		{100, command, changeJobs},
		{100, slices.Concat(command, regions), changeJobs},
		{200, slices.Concat(command, regions), changeSchedule},
		{100, regions, changeSchedule},
	} {
		f := ForecastOf(Bucket{At: clock(t, "2026-06-01 07:00:00"), Lanes: c.lanes, Price: 1,
			Standing: Standing{Name: quota.DefaultBucket}, Reset: day(t, los),
			Limits: []quota.Limit{daily(t, c.units, los)}})
		if f.Advice != c.advice {
			t.Errorf("%d units, %d lanes: %s", c.units, len(c.lanes), f.Text())
		}
	}
}

// TestAdviceOnSpending: up to the advised unscheduled spending nothing is lost until the reset;
// with half as much again, something is lost or denied.
func TestAdviceOnSpending(t *testing.T) {
	const now = "2026-11-21 20:00:00"
	start, at := clock(t, "2026-11-21 08:00:00"), clock(t, now)
	for _, perHour := range []int64{180, 420, 900} {
		limits := fmt.Sprintf("%d day", 18*perHour+100)
		b := bucketAt(t, now, limits, "0 */3 * * * US GB DE",
			flow(at.Add(-30*time.Hour), at, 2*time.Minute, perHour/30))
		f := ForecastOf(b)
		var most int64
		if n, _ := fmt.Sscanf(f.Advice, "spend at most %d units an hour", &most); n != 1 ||
			most >= perHour {
			t.Fatalf("%d an hour: %s", perHour, f.Text())
		}
		for _, rate := range []int64{most, most + most/2} {
			besides := flow(at.Add(-30*time.Hour), at, time.Hour/time.Duration(rate), 1)
			b := bucketAt(t, now, limits, "0 */3 * * * US GB DE", besides,
				spent(start, 12*(perHour-rate)))
			if after := ForecastOf(b); after.Short() != (rate > most) {
				t.Errorf("%s\nwith %d an hour: %s", f.Text(), rate, after.Text())
			}
		}
	}
}

// TestAdviceOnReservations: the first advice is to release a reservation without draws.
func TestAdviceOnReservations(t *testing.T) {
	b := bucketAt(t, "2026-11-21 20:00:00", "9500 day", "0 * * * * US GB",
		spent(clock(t, "2026-11-21 09:00:00"), 9000))
	b.Reservations = []quota.Reservation{{ID: "a", Left: 450}, {ID: "b", Left: 40, Drawn: 10}}
	for i := range b.Reservations {
		b.Reservations[i].CreatedAt, b.Reservations[i].ExpiresAt = b.At.Add(-time.Hour),
			b.At.Add(10*time.Hour)
	}
	f := ForecastOf(b)
	if f.Advice != "release reservation a" {
		t.Fatal(f.Text())
	}
	b.Reservations = b.Reservations[1:]
	if after := ForecastOf(b); after.Short() {
		t.Errorf("%s\nthen %s", f.Text(), after.Text())
	}
}
