package plan

import (
	"slices"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

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

// TestOwnPace: only a lane's own pace holds it back, and holds back no other lane. All spending
// counts for each pace.
func TestOwnPace(t *testing.T) {
	limit, even := daily(t, 240, "UTC"), daily(t, 240, "UTC")
	even.Pace = &quota.Pace{Slack: 24} // 24 units, and 10 an hour
	late := daily(t, 240, "UTC")
	late.Pace = &quota.Pace{Curve: append(make([]int64, 12), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)}
	none := share.Paces{}
	for name, c := range map[string]struct {
		own   []*share.Paces // of two jobs that want 12 units at 01:00 and 13:00
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
			both[0].Own, both[1].Own = c.own[0], c.own[1]
			got, _ := playedDay(both, []quota.Limit{limit}, c.paces)
			for i := range got {
				if !slices.Equal(got[i], c.want[i]) {
					t.Errorf("job %d: %q, want %q", i, got[i], c.want[i])
				}
			}
		})
	}
}

// TestTook: runs are charged the mean of earlier runs, to the unit in the sum; a run's hold must
// fit.
func TestTook(t *testing.T) {
	l := jobLane(t, "0 * * * *", 40)
	l.Took, l.Runs = []quota.Cost{{Bucket: quota.DefaultBucket, Units: 25}}, 10
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

// TestElsewhere: a lane run elsewhere asks for no share, and the others share what it leaves.
func TestElsewhere(t *testing.T) {
	l := jobLane(t, "0 * * * *", 4)
	l.Job, l.Elsewhere = "crawl", true
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
