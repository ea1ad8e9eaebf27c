package plan

import (
	"testing"
	"time"
	_ "time/tzdata"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

var eight = []string{"US", "GB", "DE", "FR", "IN", "BR", "AU", "CA"}

var price = []quota.Cost{{Bucket: quota.DefaultBucket, Units: 1}}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func day(t testing.TB, name string) quota.Window {
	return quota.Window{Calendar: "day", Zone: zone(t, name)}
}

func sliding(units int64, d time.Duration) quota.Limit {
	return quota.Limit{Bucket: quota.DefaultBucket, Units: units, Window: quota.Sliding(d)}
}

func daily(t testing.TB, units int64, name string) quota.Limit {
	return quota.Limit{Bucket: quota.DefaultBucket, Units: units, Window: day(t, name)}
}

// lanes are regions of one job, each offset behind the one before.
func lanes(t testing.TB, spec string, pages int64, offset time.Duration, regions ...string) []Lane {
	t.Helper()
	s, err := schedule.Parse(spec, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	var list []Lane
	for i, region := range regions {
		lane := schedule.Lane{Job: "trending", Region: region, Schedule: s, Offset: time.Duration(i) * offset}
		list = append(list, Lane{Lane: lane, Pages: pages, Weight: 1})
	}
	return list
}

// played is the runs of a plan in words: "03-08T00:00 US complete 4".
func played(p Plan) (runs []Run, r Report) {
	p.Watch = func(run Run) bool {
		runs = append(runs, run)
		return true
	}
	return runs, p.Execute()
}
