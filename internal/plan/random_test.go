package plan

import (
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

var specs = []string{"0 * * * *", "*/20 * * * *", "30 */3 * * *", "0 0 * * *", "15 2 * * *",
	"@every 1000s", "@every 47m", "5,6 */2 * * *"}

// often lists specs whose ticks are close enough to resume an interrupted chart.
var often = []string{"*/10 * * * *", "*/5 * * * *", "0,15,31 * * * *", "@every 400s"}

// drawn returns a plan of a few lanes and limits over some days, some around a clock change. Half
// of them have frequent ticks for some hours, under a window that interrupts charts.
func drawn(t *rapid.T) Plan {
	draw := func(what string, low, high int64) int64 {
		return rapid.Int64Range(low, high).Draw(t, what)
	}
	los, err := time.LoadLocation("America/Los_Angeles")
	must(t, err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	from := rapid.SampledFrom([]string{"2026-10-31T07:00:00Z", "2026-03-07T08:00:00Z",
		"2026-03-28T11:30:00Z", "2026-06-01T19:00:00Z", "2026-06-02T01:10:00Z",
		"2027-01-01T05:30:00Z", "2026-12-31T21:10:00Z"}).Draw(t, "from")
	p := Plan{Price: price, Reset: quota.Window{Calendar: "day", Zone: los}}
	if p.From, err = time.Parse(time.RFC3339, from); err != nil {
		t.Fatal(err)
	}
	specs, hours, fewest, crowded := specs, 60, int64(1), rapid.Bool().Draw(t, "crowded")
	if crowded {
		specs, hours, fewest = often, 8, 3
		short := quota.Sliding(time.Duration(rapid.IntRange(2, 25).Draw(t, "short")) * time.Minute)
		p.Limits = []quota.Limit{{Bucket: quota.DefaultBucket,
			Units: draw("units", 1, 9), Window: short}}
	}
	p.To = p.From.Add(time.Duration(rapid.IntRange(1, hours).Draw(t, "hours")) * time.Hour)
	for i := range rapid.IntRange(1, 5).Draw(t, "lanes") {
		s, err := schedule.Parse(rapid.SampledFrom(specs).Draw(t, "spec"),
			rapid.SampledFrom([]*time.Location{time.UTC, los}).Draw(t, "zone"))
		must(t, err)
		offset := time.Duration(rapid.IntRange(0, 3).Draw(t, "offset")) * 5 * time.Minute
		l := schedule.Lane{Job: "trending", Region: eight[i], Schedule: s, Offset: offset}
		p.Lanes = append(p.Lanes, share.Lane{Lane: l,
			Pages: draw("pages", fewest, 5), Weight: draw("weight", 0, 3),
			Priority: draw("priority", 0, 1), Floor: draw("floor", 0, 20)})
	}
	windows := []quota.Window{quota.Sliding(24 * time.Hour), quota.Sliding(7 * time.Hour),
		quota.Sliding(time.Hour), quota.Sliding(7 * time.Minute),
		{Calendar: "day", Zone: los}, {Calendar: "day", Zone: berlin},
		{Calendar: "hour", Zone: los}, {Calendar: "minute", Zone: berlin},
		{Calendar: "week", Zone: berlin}, {Calendar: "month", Zone: los},
		{Length: 5 * time.Hour, Anchored: true},
		{Restore: quota.Rate{Units: draw("restored", 1, 9), Per: 7 * time.Minute}}}
	if !crowded && rapid.Bool().Draw(t, "one window") {
		windows = []quota.Window{rapid.SampledFrom(windows[7:]).Draw(t, "window")}
	}
	for _, w := range windows {
		if rapid.IntRange(0, 4).Draw(t, "limited") > 0 && len(p.Limits) > 0 {
			continue
		}
		units := draw("units", 0, 120)
		p.Limits = append(p.Limits, quota.Limit{Bucket: quota.DefaultBucket, Units: units,
			Headroom: min(units, draw("headroom", 0, 9)), Window: w})
	}
	if rapid.Bool().Draw(t, "paced") {
		pace := &quota.Pace{Slack: draw("slack", 0, 30)}
		if rapid.Bool().Draw(t, "curved") {
			pace.Curve = rapid.SliceOfN(rapid.Int64Range(0, 9), 24, 24).Draw(t, "curve")
			pace.Curve[12]++
		}
		p.Paces = []quota.Limit{{Bucket: quota.DefaultBucket, Units: draw("paced units", 1, 120),
			Window: p.Reset, Pace: pace}}
	}
	return p
}

// belowFloor counts whether a lane has not had its floor of the day, with pages of one unit.
func belowFloor(p Plan, lane share.Lane, before []Run, at time.Time) bool {
	start, _ := p.Reset.Bounds(at)
	left := lane.Floor
	for _, r := range before {
		if r.Region == lane.Region && !r.At.Before(start) {
			left -= r.Pages
		}
	}
	return left > 0
}
