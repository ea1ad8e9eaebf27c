package daemon_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/daemon"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
)

// TestPlanForetells: the daemon does what the plan of a schedule predicts, as long as no two
// lanes tick at one moment: the same runs are denied, left out or cut short, to the minute, with
// as many pages, and resume charts that were cut short.
func TestPlanForetells(t *testing.T) {
	t.Parallel()
	los, err := quota.ParseWindow("day", "America/Los_Angeles")
	must(t, err)
	limit := func(units int64, w quota.Window) quota.Limit {
		return quota.Limit{Bucket: quota.DefaultBucket, Units: units, Headroom: 3, Window: w}
	}
	back := time.Date(2026, time.November, 1, 7, 0, 0, 0, time.UTC) // a day of 25 hours
	short := func(units int64, length time.Duration) quota.Limit {
		return quota.Limit{Bucket: quota.DefaultBucket, Units: units, Window: quota.Sliding(length)}
	}
	const five = "US GB DE JP KR"
	for _, c := range []struct {
		name    string
		begin   time.Time
		hours   int
		spec    string
		regions string
		limits  []quota.Limit
		slack   int64 // of a pace; 0 for none
		weights []int64
		want    string // outcomes that must be among the predicted ones
		jobs    func(*proc) []daemon.Lane
	}{
		{"it fits", midnight, 5, "0 * * * *", eight, []quota.Limit{limit(400, los)}, 0, nil,
			"complete", nil},
		{"short of units, from the evening into the next day", midnight.Add(17 * time.Hour), 14,
			"0 * * * *", eight,
			[]quota.Limit{limit(80, los)}, 0, []int64{3, 2, 1, 0}, "left_out", nil},
		{"short of units in a day of 25 hours", back, 26, "0 * * * *", "US GB DE FR",
			[]quota.Limit{limit(195, los)}, 0, nil, "left_out", nil},
		{"a window that slides", midnight, 10, "0 * * * *", eight,
			[]quota.Limit{limit(82, quota.Sliding(8*time.Hour))}, 0, []int64{3}, "left_out", nil},
		{"the defaults, from noon", midnight.Add(12 * time.Hour), 26, "0 * * * *", "US GB DE",
			[]quota.Limit{limit(100, quota.Sliding(24*time.Hour)), limit(100, los)},
			0, []int64{2}, "left_out", nil},
		{"a short window", midnight, 4, "0 * * * *", eight,
			[]quota.Limit{limit(400, los), limit(12, quota.Sliding(20*time.Minute))}, 0, nil,
			"partial denied", nil},
		{"a pace", midnight, 8, "*/30 * * * *", eight, []quota.Limit{limit(700, los)}, 5, nil,
			"partial left_out", nil},
		{"a short window, and ticks that resume", midnight, 2, "*/5 * * * *", five,
			[]quota.Limit{limit(5000, los), short(5, 3*time.Minute)}, 0, nil,
			"partial denied resumed", nil},
		{"a pace, and ticks that resume", midnight, 3, "*/10 * * * *", five,
			[]quota.Limit{limit(1100, los)}, 6, nil, "partial left_out resumed", nil},
		{"short of units, and ticks that resume", midnight, 1, "*/5 7 * * *", five,
			[]quota.Limit{limit(90, los), short(5, 3*time.Minute)}, 0, []int64{1, 2, 3},
			"partial left_out resumed", nil},
		{"a window that slides, and a quarter of an hour", midnight, 3, "*/15 * * * *", five,
			[]quota.Limit{short(9, 14*time.Minute)}, 0, nil, "partial denied resumed", nil},
		{"jobs that fit", midnight, 6, "0 * * * *", "US GB", []quota.Limit{limit(400, los)}, 0, nil,
			"complete", someJobs},
		{"jobs of different weights, short of units", midnight, 14, "0 * * * *", "US GB DE",
			[]quota.Limit{limit(200, los)}, 0, []int64{3, 1, 2}, "left_out", someJobs},
		{"jobs and a window that slides", midnight.Add(9 * time.Hour), 12, "0 * * * *", "US GB",
			[]quota.Limit{limit(110, quota.Sliding(8*time.Hour))}, 0, nil, "left_out", someJobs},
		{"jobs and a short window", midnight, 5, "0 * * * *", "US GB",
			[]quota.Limit{limit(600, los), limit(14, quota.Sliding(30*time.Minute))}, 0, nil,
			"denied", someJobs},
		{"jobs with paces of their own", midnight, 8, "*/30 * * * *", "US GB",
			[]quota.Limit{limit(500, los)}, 5, nil, "denied", pacedJobs},
	} {
		t.Run(c.name, func(t *testing.T) {
			at(t, c.begin.Add(-time.Minute), 0, func(w *env) {
				w.limits = c.limits
				if c.slack > 0 {
					w.paces = w.line(&quota.Pace{Slack: c.slack})
				}
				all := weighted(lanes(t, c.spec, "UTC", c.regions, 3*time.Minute), c.weights...)
				end := c.begin.Add(time.Duration(c.hours) * time.Hour)
				p := plan.Plan{Price: []quota.Cost{{Bucket: quota.DefaultBucket, Units: 1}},
					Limits: w.limits, Paces: w.paces, Reset: los,
					From: c.begin, To: end}
				d := w.open(all...)
				units := make(map[string]int64)
				if c.jobs != nil {
					jobs := c.jobs(d)
					d.config.Lanes = append(d.config.Lanes, jobs...)
					for _, l := range jobs {
						all = append(all, l.Lane)
						units[l.Job] = l.Price[0].Units
					}
				}
				for i, l := range all {
					if c.regions == five {
						all[i].Offset, all[i].Pages = time.Duration(i)*40*time.Second,
							int64(chartPages[l.Region])
					}
				}
				p.Lanes = all
				foretold := make(map[string]string)
				outcomes := make(map[string]int)
				p.Watch = func(r plan.Run) bool {
					foretold[r.ID()] = fmt.Sprintf("%s %d %s", r.Outcome,
						r.Pages*max(1, units[r.Job]), r.Limit)
					if outcomes[r.Outcome.String()]++; r.Pages > 0 && r.Region != "" &&
						int(r.Wanted) < chartPages[r.Region] {
						outcomes["resumed"]++
					}
					return true
				}
				p.Execute()
				d.config.Lanes = append(d.sweep.Lanes(all[:len(all)-len(units)]),
					d.config.Lanes[len(all)-len(units):]...)
				d.start().stopAfter(time.Until(end) - time.Second)
				if done := w.outcomes(); !maps.Equal(foretold, done) {
					for _, id := range slices.Sorted(maps.Keys(foretold)) {
						if foretold[id] != done[id] {
							t.Errorf("%s: predicted %s, got %s", id, foretold[id], done[id])
						}
					}
				}
				for id, outcome := range foretold { // a tick that is left out resumes no chart
					if strings.HasPrefix(outcome, plan.LeftOut.String()) &&
						w.logged("resuming the chart of an earlier tick", "tick="+id+" ") > 0 {
						t.Errorf("%s resumed a chart although it was left out", id)
					}
				}
				for want := range strings.FieldsSeq(c.want) {
					if outcomes[want] == 0 {
						t.Errorf("no predicted run is %s: %v", want, outcomes)
					}
				}
				t.Log(outcomes)
			})
		})
	}
}

// someJobs returns jobs with different costs, weights and ticks.
func someJobs(p *proc) []daemon.Lane {
	a := p.jobOf("backfill", "7 * * * *", 6, "")
	b := p.jobOf("search", "*/20 * * * *", 3, "")
	c := p.jobOf("nightly", "11 */2 * * *", 10, "")
	a.Weight, b.Weight, c.Floor, b.Offset = 2, 1, 20, 90*time.Second
	return []daemon.Lane{a, b, c}
}

// pacedJobs returns jobs with and without a pace.
func pacedJobs(p *proc) []daemon.Lane {
	all := someJobs(p)
	p.pace(&all[0], &quota.Pace{Slack: 20})
	p.pace(&all[1], nil)
	return all
}

var (
	tickOf  = regexp.MustCompile(`tick=(\S+)`)
	limitOf = regexp.MustCompile(`limit=("[^"]*"|\S+)`)
	unitsOf = regexp.MustCompile(`units\.default=(\d+)`)
)

// said returns the match of a pattern in a line, or "".
func said(pattern *regexp.Regexp, line string) string {
	if found := pattern.FindStringSubmatch(line); found != nil {
		return strings.Trim(found[1], `"`)
	}
	return ""
}

// outcomes returns the outcomes of the ticks by the log, in the form of a plan. A unit is a page.
func (w *env) outcomes() map[string]string {
	w.Helper()
	done := make(map[string]string)
	for _, line := range w.log {
		id, units := said(tickOf, line), said(unitsOf, line)
		switch {
		case strings.Contains(line, `msg="tick done"`):
			done[id] = fmt.Sprintf("%s %s ", plan.Complete, units)
		case strings.Contains(line, `msg="tick left out"`):
			done[id] = fmt.Sprintf("%s 0 %s", plan.LeftOut, plan.ShareName)
		case strings.Contains(line, `msg="tick denied"`) && units == "":
			done[id] = fmt.Sprintf("%s 0 %s", plan.Denied, said(limitOf, line))
		case strings.Contains(line, `msg="tick denied"`):
			done[id] = fmt.Sprintf("%s %s %s", plan.Partial, units, said(limitOf, line))
		}
	}
	return done
}
