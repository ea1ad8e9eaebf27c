package plan

import (
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

const los = "America/Los_Angeles"

var eight = []string{"US", "GB", "DE", "FR", "IN", "BR", "AU", "CA"}

var price = []quota.Cost{{Bucket: quota.DefaultBucket, Units: 1}}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	must(t, err)
	return loc
}

func clock(t rapid.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.DateTime, text)
	must(t, err)
	return at
}

func day(t testing.TB, name string) quota.Window {
	return quota.Window{Calendar: "day", Zone: zone(t, name)}
}

func sliding(units int64, d time.Duration) quota.Limit {
	return quota.Limit{Bucket: quota.DefaultBucket, Units: units, Window: quota.Sliding(d)}
}

func rolling(units int64) []quota.Limit {
	return []quota.Limit{sliding(units, 24*time.Hour)}
}

func daily(t testing.TB, units int64, name string) quota.Limit {
	return quota.Limit{Bucket: quota.DefaultBucket, Units: units, Window: day(t, name)}
}

// lanes returns the regions of one job, each offset after the one before.
func lanes(t testing.TB, spec string, pages int64, offset time.Duration,
	regions ...string) []share.Lane {
	t.Helper()
	s, err := schedule.Parse(spec, time.UTC)
	must(t, err)
	var list []share.Lane
	for i, region := range regions {
		lane := schedule.Lane{LaneID: schedule.LaneID{Job: "trending", Region: region}, Schedule: s,
			Offset: time.Duration(i) * offset}
		list = append(list, share.Lane{Lane: lane, Pages: pages, Weight: 1})
	}
	return list
}

// played returns the runs of a plan.
func played(p Plan) (runs []Run, r Report) {
	p.Watch = func(run Run) bool {
		runs = append(runs, run)
		return true
	}
	return runs, p.Execute()
}

// missing returns the pages a lane's chart lacks at a moment: all of them, unless an incomplete
// chart was begun within the last quarter of an hour.
func missing(lane share.Lane, before []Run, at time.Time) int64 {
	var begun time.Time
	have := int64(0)
	old := func(at time.Time) bool { return at.After(begun.Add(15 * time.Minute)) }
	for _, r := range before {
		if r.Region != lane.Region || r.Job != lane.Job || r.Pages == 0 {
			continue
		}
		if have == 0 || have == lane.Pages || old(r.At) {
			have, begun = 0, r.At
		}
		have += r.Pages
	}
	if have == lane.Pages || old(at) {
		have = 0
	}
	return lane.Pages - have
}

// laneOf returns the lane of a run.
func laneOf(p Plan, run Run) share.Lane {
	return p.Lanes[slices.IndexFunc(p.Lanes,
		func(l share.Lane) bool { return l.Region == run.Region && l.Job == run.Job })]
}

// must fails the test on an error.
func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
