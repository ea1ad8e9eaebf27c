package daemon_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
)

// TestPlanForetells: what the plan says of a schedule is what the daemon then does: the same runs are denied, left out or cut
// off, to the minute, with as many pages, as long as no two lanes tick in one moment.
func TestPlanForetells(t *testing.T) {
	los, err := quota.ParseWindow("day", "America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	limit := func(units int64, w quota.Window) quota.Limit {
		return quota.Limit{Bucket: quota.DefaultBucket, Units: units, Headroom: 3, Window: w}
	}
	back := time.Date(2026, time.November, 1, 7, 0, 0, 0, time.UTC) // a day of 25 hours
	for _, c := range []struct {
		name    string
		begin   time.Time
		hours   int
		spec    string
		limits  []quota.Limit
		slack   int64 // of a pace; 0 for none
		weights []int64
		want    string // an outcome that must be among those foretold
	}{
		{"it fits", midnight, 5, "0 * * * *", []quota.Limit{limit(400, los)}, 0, nil, plan.Complete.String()},
		{"short of units", midnight, 30, "0 * * * *", []quota.Limit{limit(230, los)}, 0, []int64{3, 2, 1, 0}, plan.LeftOut.String()},
		{"short of units in a day of 25 hours", back, 26, "0 * * * *", []quota.Limit{limit(400, los)}, 0, nil, plan.LeftOut.String()},
		{"a window that slides", midnight, 30, "0 * * * *", []quota.Limit{limit(240, quota.Sliding(24*time.Hour))}, 0, nil, plan.Partial.String()},
		{"a short window", midnight, 4, "0 * * * *", []quota.Limit{limit(400, los), limit(12, quota.Sliding(20*time.Minute))}, 0, nil, plan.Denied.String()},
		{"a pace", midnight, 8, "*/30 * * * *", []quota.Limit{limit(700, los)}, 5, nil, plan.Partial.String()},
	} {
		t.Run(c.name, func(t *testing.T) {
			at(t, c.begin.Add(-time.Minute), 0, func(w *world) {
				w.limits = c.limits
				if c.slack > 0 {
					line := c.limits[0]
					line.Pace = &quota.Pace{Slack: c.slack}
					w.paces = []quota.Limit{line}
				}
				all := weighted(lanes(t, c.spec, "UTC", eight, 3*time.Minute), c.weights...)
				end := c.begin.Add(time.Duration(c.hours) * time.Hour)
				p := plan.Plan{Price: []quota.Cost{{Bucket: quota.DefaultBucket, Units: 1}}, Limits: w.limits, Paces: w.paces, Reset: los,
					From: c.begin, To: end}
				for _, l := range all {
					p.Lanes = append(p.Lanes, plan.Lane{Lane: l.Lane, Pages: int64(l.Pages), Weight: l.Weight, Floor: l.Floor})
				}
				foretold := make(map[string]string)
				outcomes := make(map[string]bool)
				p.Watch = func(r plan.Run) bool {
					foretold[r.ID()] = fmt.Sprintf("%s %d %s", r.Outcome, r.Pages, r.Limit)
					outcomes[r.Outcome.String()] = true
					return true
				}
				p.Execute()
				d := w.open(all...)
				d.work.CatchUp = false
				d.start()
				time.Sleep(time.Until(end) - time.Second)
				d.end()
				if done := w.outcomes(); !maps.Equal(foretold, done) {
					for _, id := range slices.Sorted(maps.Keys(foretold)) {
						if foretold[id] != done[id] {
							t.Errorf("%s: foretold %s, done %s", id, foretold[id], done[id])
						}
					}
				}
				if !outcomes[c.want] {
					t.Errorf("nothing foretold is %s: %v", c.want, outcomes)
				}
			})
		})
	}
}

var (
	tickOf  = regexp.MustCompile(`tick=(\S+)`)
	limitOf = regexp.MustCompile(`limit=("[^"]*"|\S+)`)
)

// outcomes is what the ticks came to, as a plan says it, by the log and the catalogue.
func (w *world) outcomes() map[string]string {
	w.Helper()
	pages := make(map[string]int)
	for region := range strings.FieldsSeq(eight) {
		charts, err := w.look.catalog.Charts(context.Background(), catalog.ChartKey{Region: region}, 0)
		if err != nil {
			w.Fatal(err)
		}
		for _, c := range charts {
			pages[c.Run] = c.Pages
		}
	}
	done := make(map[string]string)
	for _, line := range w.log {
		found := tickOf.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		id := found[1]
		switch {
		case strings.Contains(line, `msg="tick done"`):
			done[id] = fmt.Sprintf("%s %d ", plan.Complete, pages[id])
		case strings.Contains(line, `msg="tick left out"`):
			done[id] = fmt.Sprintf("%s 0 %s", plan.LeftOut, plan.ShareName)
		case strings.Contains(line, `msg="tick denied"`):
			outcome := plan.Denied
			if pages[id] > 0 {
				outcome = plan.Partial
			}
			limit := ""
			if found := limitOf.FindStringSubmatch(line); found != nil {
				limit = strings.Trim(found[1], `"`)
			}
			done[id] = fmt.Sprintf("%s %d %s", outcome, pages[id], limit)
		}
	}
	return done
}
