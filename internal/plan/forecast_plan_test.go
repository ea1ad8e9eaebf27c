package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

func entry(l share.Lane, at time.Time, units int64) quota.Spent {
	labels := quota.Labels{quota.LabelJob: l.Job, quota.LabelRegion: l.Region}
	return quota.Spent{At: at, Units: units, Labels: labels}
}

// lostRun formats a run that loses pages.
func lostRun(r Run) string {
	return fmt.Sprintf("%s %s: %d of %d, share %v", r.At.Format(time.TimeOnly), r.ID(),
		r.Missing(), r.Wanted, r.Limit == ShareName)
}

// planned returns the runs that a plan loses until a moment.
func planned(b Bucket, to time.Time) (lost []string) {
	p := Plan{Lanes: b.Lanes, Price: []quota.Cost{{Bucket: b.Name, Units: b.Price}},
		Limits: b.Limits, Paces: b.Paces, Reset: b.Reset, From: b.At, To: to,
		Before: []Standing{b.Standing}}
	runs, _ := played(p)
	for _, r := range runs {
		if r.Lost() {
			lost = append(lost, lostRun(r))
		}
	}
	return lost
}

// predicted returns the runs that a forecast loses.
func predicted(f Forecast) (lost []string) {
	for _, r := range f.LostRuns {
		lost = append(lost, lostRun(r))
	}
	return lost
}

// TestAsPlanned: without unscheduled spending, the forecast and the plan lose and leave out the
// same runs.
func TestAsPlanned(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := draws{r}.scenario(t)
		f := ForecastOf(b)
		got, want := predicted(f), planned(b, f.ResetAt)
		if !slices.Equal(got, want) {
			r.Fatalf("at %v, %s\nforecast:\n%s\nplanned:\n%s", b.At, f.Text(),
				strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestShortLater: on a day that becomes short because of unscheduled spending, the runs left out
// from then on are worth about the missing units.
func TestShortLater(t *testing.T) {
	at := clock(t, "2026-11-21 08:00:02")
	b := bucketAt(t, "2026-11-21 08:00:02", "940 day", "*/20 * * * * US GB",
		flow(at.Add(-8*time.Hour), at, 10*time.Minute, 3)) // 568 scheduled, and 432 in addition
	for i := range b.Lanes {
		b.Lanes[i].Weight = 1
	}
	f := ForecastOf(b)
	missing := f.Scheduled.Units + int64(24*f.Rate.Likely) - 940
	// Unscheduled spending takes some of them too, in the last hours.
	d := f.LeftOut.Units - missing
	if f.LeftOut.Runs == 0 || d < -int64(4*f.Rate.Likely) || d > 20 {
		t.Errorf("%d units left out, about %d missing: %s", f.LeftOut.Units, missing, f.Text())
	}
	if f.LeftOut.Runs > 0 && f.LostRuns[0].At.Before(at.Add(2*time.Hour)) {
		t.Errorf("the first is left out at %v", f.LostRuns[0].At)
	}
}
