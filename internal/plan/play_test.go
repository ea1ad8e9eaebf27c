package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/ingest"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

var begin = time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC)

// parsed returns the lanes of one job, in order: "US 4" fetches 4 pages at the tick, and "US 4 1m"
// a minute after it.
func parsed(t *testing.T, spec, regions string) (all []share.Lane) {
	for text := range strings.SplitSeq(regions, ", ") {
		l, offset := lanes(t, spec, 0, 0, "")[0], ""
		_, err := fmt.Sscan(text+" 0s", &l.Region, &l.Pages, &offset)
		must(t, err)
		l.Offset, err = time.ParseDuration(offset)
		must(t, err)
		all = append(all, l)
	}
	return all
}

// outcomes simulates a plan, with other charges at the given minutes if they fit. It returns a line
// for each run and charge, and the number of pages that the runs need.
func outcomes(plan Plan, charges map[int]int64) (lines []string, wanted int64) {
	p := plan.Play()
	clock := func(at time.Time) string { return at.Format("15:04") }
	for minute := range 24 * 60 {
		now := begin.Add(time.Duration(minute) * time.Minute).UnixMicro()
		for at, ok := p.Next(); ok && at < now; at, ok = p.Next() {
			r := p.Run()
			wanted += r.Wanted
			line := fmt.Sprintf("%s %s %s %d/%d", clock(r.At), r.Region, r.Outcome, r.Pages,
				r.Wanted)
			if r.Lost() {
				line += " " + r.Limit
			}
			if !r.RetryAt.IsZero() {
				line += " " + clock(r.RetryAt)
			}
			lines = append(lines, line)
		}
		if units := charges[minute]; units > 0 {
			room, _ := p.Room(now)
			if units <= room {
				p.Take(now, units)
			}
			left, limit := p.Room(now)
			lines = append(lines, fmt.Sprint(clock(moment(now)), " others ", units, " ",
				units <= room, ", then ", left, " by ", limit, ", more at ", clock(p.Frees(now))))
		}
	}
	return lines, wanted
}

// TestPlay compares plans with days computed by hand. A line has a run, the pages that it gets, and
// the pages that it needs.
func TestPlay(t *testing.T) {
	four := 4 * time.Minute
	for name, c := range map[string]struct {
		spec, regions string
		limits        []quota.Limit
		charges       map[int]int64
		suspended     int // minutes
		want          []string
	}{
		"the example of the package": {"0 0-4 * * *", "US 4, BR 4",
			[]quota.Limit{sliding(30, 4*time.Hour)}, nil, 0, []string{
				"00:00 US complete 4/4", "00:00 BR complete 4/4", "01:00 US complete 4/4",
				"01:00 BR complete 4/4", "02:00 US complete 4/4", "02:00 BR complete 4/4",
				"03:00 US complete 4/4", "03:00 BR partial 2/4 default 4h 04:00",
				"04:00 BR complete 4/4", "04:00 US complete 4/4"}},
		"a charge in between": {"0 0-1 * * *", "US 4, BR 4",
			[]quota.Limit{sliding(10, 90*time.Minute)},
			map[int]int64{30: 2, 40: 1}, 0, []string{
				"00:00 US complete 4/4", "00:00 BR complete 4/4",
				"00:30 others 2 true, then 0 by default 1h30m, more at 01:30",
				"00:40 others 1 false, then 0 by default 1h30m, more at 01:30",
				"01:00 US denied 0/4 default 1h30m 01:30",
				"01:00 BR denied 0/4 default 1h30m 01:30"}},
		"several windows: the one with the longest wait is named": {"*/10 0 * * *", "US 3",
			[]quota.Limit{sliding(2, 5*time.Minute), sliding(6, 25*time.Minute)}, nil, 0, []string{
				"00:00 US partial 2/3 default 5m 00:05", "00:10 US complete 1/1",
				"00:20 US partial 2/3 default 5m 00:25", "00:30 US complete 1/1",
				"00:40 US partial 2/3 default 5m 00:45", "00:50 US complete 1/1"}},
		"charts of different length": {"0 */8 * * *", "US 1, BR 5, JP 3",
			[]quota.Limit{sliding(18, 24*time.Hour)}, nil, 0, []string{
				"00:00 US complete 1/1", "00:00 BR complete 5/5", "00:00 JP complete 3/3",
				"08:00 US complete 1/1", "08:00 BR complete 5/5", "08:00 JP left_out 0/3 share",
				"16:00 JP complete 3/3", "16:00 US left_out 0/1 share",
				"16:00 BR left_out 0/5 share"}},
		"the next run gets the rest": {"0-14/5 0 * * *", "US 4",
			[]quota.Limit{sliding(3, four)}, nil, 0, []string{
				"00:00 US partial 3/4 default 4m 00:04", "00:05 US complete 1/1",
				"00:10 US partial 3/4 default 4m 00:14"}},
		"after a quarter of an hour": {"*/15 0 * * *", "US 4",
			[]quota.Limit{sliding(3, four)}, nil, 0, []string{
				"00:00 US partial 3/4 default 4m 00:04", "00:15 US complete 1/1",
				"00:30 US partial 3/4 default 4m 00:34", "00:45 US complete 1/1"}},
		"a minute later it is begun again": {"0-59/16 0 * * *", "US 4",
			[]quota.Limit{sliding(3, four)}, nil, 0, []string{
				"00:00 US partial 3/4 default 4m 00:04", "00:16 US partial 3/4 default 4m 00:20",
				"00:32 US partial 3/4 default 4m 00:36", "00:48 US partial 3/4 default 4m 00:52"}},
		"cut off again and again, until its first page is too old": {"0-29/5 0 * * *", "US 9",
			[]quota.Limit{sliding(2, four)}, nil, 0, []string{
				"00:00 US partial 2/9 default 4m 00:04", "00:05 US partial 2/7 default 4m 00:09",
				"00:10 US partial 2/5 default 4m 00:14", "00:15 US partial 2/3 default 4m 00:19",
				"00:20 US partial 2/9 default 4m 00:24", "00:25 US partial 2/7 default 4m 00:29"}},
		"denied between": {"0-29/5 0 * * *", "US 4",
			[]quota.Limit{sliding(2, 9*time.Minute)}, nil, 0, []string{
				"00:00 US partial 2/4 default 9m 00:09", "00:05 US denied 0/2 default 9m 00:09",
				"00:10 US complete 2/2", "00:15 US denied 0/4 default 9m 00:19",
				"00:20 US partial 2/4 default 9m 00:29", "00:25 US denied 0/2 default 9m 00:29"}},
		"a chart begins with its first page": {"0-29/10 0 * * *", "US 4",
			[]quota.Limit{sliding(3, 8*time.Minute)}, nil, 10, []string{
				"00:00 US denied 0/4 suspended 00:10", "00:10 US partial 3/4 default 8m 00:18",
				"00:20 US complete 1/1"}},
		"each lane its own": {"0-14/5 0 * * *", "US 4, BR 4 1m",
			[]quota.Limit{sliding(5, four)}, nil, 0, []string{
				"00:00 US complete 4/4", "00:01 BR partial 1/4 default 4m 00:04",
				"00:05 US complete 4/4", "00:06 BR partial 1/3 default 4m 00:09",
				"00:10 US complete 4/4", "00:11 BR partial 1/2 default 4m 00:14"}},
		// 8 units are two runs of six ticks. The last tick gets what is left.
		"left out between": {"0-29/5 0 * * *", "US 4",
			[]quota.Limit{sliding(2, four), daily(t, 8, "UTC")}, nil, 0, []string{
				"00:00 US partial 2/4 default 4m 00:04", "00:05 US left_out 0/2 share",
				"00:10 US complete 2/2", "00:15 US left_out 0/4 share",
				"00:20 US partial 2/4 default 4m 00:24", "00:25 US left_out 0/2 share"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan{Lanes: parsed(t, c.spec, c.regions), Limits: c.limits, Price: price,
				Reset: day(t, "UTC"), From: begin, To: begin.AddDate(0, 0, 1)}
			if c.suspended > 0 {
				until := begin.Add(time.Duration(c.suspended) * time.Minute)
				p.Before = []Standing{{Name: "default", SuspendedUntil: until}}
			}
			got, wanted := outcomes(p, c.charges)
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			r := p.Execute()
			if c.charges == nil && (r.Wanted != wanted || r.Days[0].Planned != wanted ||
				r.Lanes[0].Wanted > wanted) {
				t.Errorf("%d pages are wanted, %d planned; want %d", r.Wanted, r.Days[0].Planned,
					wanted)
			}
		})
	}
	if freshness != ingest.DefaultResume {
		t.Errorf("a chart is resumed within %s, here within %s", ingest.DefaultResume, freshness)
	}
}

// jobLane returns a lane that holds the given units.
func jobLane(t *testing.T, spec string, units int64) share.Lane {
	l := lanes(t, spec, 1, 0, "")[0]
	l.Job, l.Price = "j", []quota.Cost{{Bucket: quota.DefaultBucket, Units: units}}
	return l
}

// playedDay returns how the runs of a day end, by lane, and the units used at its end.
func playedDay(lanes []share.Lane, limits, paces []quota.Limit) (ends [][]string, used int64) {
	plan := Plan{Lanes: lanes, Limits: limits, Paces: paces,
		Reset: quota.Window{Calendar: "day", Zone: time.UTC},
		From:  begin, To: begin.AddDate(0, 0, 1)}
	ends = make([][]string, len(lanes))
	p := plan.Play()
	for _, ok := p.Next(); ok; _, ok = p.Next() {
		r := p.Run()
		text := r.At.Format("15:04 ") + r.Outcome.String()
		if r.Lost() {
			text += " " + r.Limit
		}
		ends[r.Lane] = append(ends[r.Lane], text)
	}
	return ends, p.Used(begin.AddDate(0, 0, 1).UnixMicro()-1, nil)[0]
}

// TestOwnPace: a lane is delayed only by its own pace, and that pace delays no other lane. All
// spending counts for each pace.
func TestOwnPace(t *testing.T) {
	limit, even := daily(t, 240, "UTC"), daily(t, 240, "UTC")
	even.Pace = &quota.Pace{Slack: 24} // 24 units, and 10 an hour
	late := daily(t, 240, "UTC")
	late.Pace = &quota.Pace{Curve: append(make([]int64, 12), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)}
	none := share.Paces{}
	for name, c := range map[string]struct {
		own   []*share.Paces // of two jobs that need 12 units at 01:00 and 13:00
		paces []quota.Limit
		want  [][]string
	}{
		"no line": {[]*share.Paces{nil, nil}, nil, [][]string{
			{"01:00 complete", "13:00 complete"}, {"01:00 complete", "13:00 complete"}}},
		"the line of all": {[]*share.Paces{nil, nil}, []quota.Limit{late}, [][]string{
			{"01:00 denied pace", "13:00 complete"}, {"01:00 denied pace", "13:00 denied pace"}}},
		"one has its own": {[]*share.Paces{nil, {late}}, nil, [][]string{
			{"01:00 complete", "13:00 complete"}, {"01:00 denied pace", "13:00 denied pace"}}},
		"its own instead of that of all": {[]*share.Paces{{even}, nil}, []quota.Limit{late},
			[][]string{{"01:00 complete", "13:00 complete"},
				{"01:00 denied pace", "13:00 denied pace"}}},
		"none of its own": {[]*share.Paces{nil, &none}, []quota.Limit{late}, [][]string{
			{"01:00 denied pace", "13:00 denied pace"}, {"01:00 complete", "13:00 complete"}}},
	} {
		t.Run(name, func(t *testing.T) {
			both := []share.Lane{jobLane(t, "0 1,13 * * *", 12), jobLane(t, "0 1,13 * * *", 12)}
			both[0].Job, both[1].Job = "a", "b"
			both[0].OwnPaces, both[1].OwnPaces = c.own[0], c.own[1]
			got, _ := playedDay(both, []quota.Limit{limit}, c.paces)
			for i := range got {
				if !slices.Equal(got[i], c.want[i]) {
					t.Errorf("job %d: %q, want %q", i, got[i], c.want[i])
				}
			}
		})
	}
}

// TestTook: runs are charged the mean of earlier runs, and their sum is exact to the unit. A run's
// hold must fit.
func TestTook(t *testing.T) {
	l := jobLane(t, "0 * * * *", 40)
	l.LearnedCosts, l.Runs = []quota.Cost{{Bucket: quota.DefaultBucket, Units: 25}}, 10
	ends, used := playedDay([]share.Lane{l}, []quota.Limit{daily(t, 1000, "UTC")}, nil)
	if used != 60 || len(ends[0]) != 24 {
		t.Errorf("24 runs of 2.5 units took %d: %q", used, ends)
	}
	minute := []quota.Limit{sliding(40, time.Minute)} // too short to be shared
	pair := []share.Lane{l, l}
	pair[1].Job = "other"
	ends, _ = playedDay(pair, minute, nil)
	if ends[0][0] != "00:00 complete" || ends[1][0] != "00:00 denied default 1m" {
		t.Errorf("a hold of 40 does not fit into 40 units with 2 used: %q", ends)
	}
}

// TestElsewhere: a lane that another program runs has no share, and the other lanes share the units
// that it leaves.
func TestElsewhere(t *testing.T) {
	l := jobLane(t, "0 * * * *", 4)
	l.Job, l.External = "crawl", true
	others := lanes(t, "0 * * * *", 1, 0, "US")
	others[0].Price = l.Price
	ends, used := playedDay([]share.Lane{l, others[0]}, []quota.Limit{daily(t, 100, "UTC")}, nil)
	if used > 100 || slices.Contains(ends[0], "00:00 left_out share") {
		t.Errorf("%d used: %q", used, ends)
	}
	count := func(list []string, what string) (n int) {
		for _, text := range list {
			if text[6:] == what {
				n++
			}
		}
		return n
	}
	if n := count(ends[0], "left_out share"); n != 0 {
		t.Errorf("%d runs elsewhere are left out: %q", n, ends[0])
	}
	if n := count(ends[1], "complete"); n < 1 || n > 12 {
		t.Errorf("%d runs here: %q", n, ends[1])
	}
}
