package daemon_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
)

// TestHistoryForetells: charts have fewer pages than configured, some two and some four, as the
// catalogue knows after the first hours of the day. The plan and the forecast for the rest of the
// day match what the daemon does with scarce units.
func TestHistoryForetells(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			at(t, midnight.Add(-time.Minute), 0, func(w *world) {
				random := rand.New(rand.NewPCG(seed, 1))
				day, err := quota.ParseWindow("day", "America/Los_Angeles")
				must(t, err)
				w.limits = nil
				for _, window := range []quota.Window{day,
					quota.Sliding(24 * time.Hour)}[:1+seed%2] {
					w.limits = append(w.limits, quota.Limit{Bucket: quota.DefaultBucket,
						Units: 60 + random.Int64N(120), Window: window})
				}
				all := lanes(t, "0 * * * *", "UTC", "US JP FR KR DE", 3*time.Minute)
				for i := range all {
					all[i].Pages, all[i].Weight = 4, 1+random.Int64N(3)
				}
				d := w.open(all...).start()
				time.Sleep(3*time.Hour - time.Minute)
				now := time.Now()

				price := []quota.Cost{{Bucket: quota.DefaultBucket, Units: 1}}
				known, shorter := slices.Clone(all), 0
				for i := range known {
					l := &known[i]
					l.Pages, err = d.catalog.PagesWanted(w.Context(), l.Region, l.Pages)
					must(t, err)
					if l.Pages < all[i].Pages {
						shorter++
					}
				}
				if shorter < 2 {
					t.Errorf("%d regions have a history of fewer pages", shorter)
				}
				before := plan.Standing{Bucket: quota.DefaultBucket}
				query := quota.SpentQuery{Credential: "key1", Bucket: before.Bucket,
					Limits: w.limits,
					Now:    now, Since: now.Add(-quota.Retention)}
				if before.Spent, err = query.Read(w.Context(), w.look.ledger); err != nil {
					t.Fatal(err)
				}
				question := plan.Question{Credential: "key1", Limits: w.limits, Lanes: known,
					Price:  price,
					Resets: map[string]quota.Window{quota.DefaultBucket: day}}
				said, err := question.Ask(w.Context(), w.look.ledger)
				must(t, err)
				lost := make(map[string]string) // according to the forecast
				for _, r := range said[0].LostRuns {
					lost[r.ID()] = fmt.Sprint(r.Pages-r.Lost, " ", r.Limit)
				}
				foretold, losing := make(map[string]string), 0
				p := plan.Plan{Lanes: known, Price: price, Limits: w.limits, Reset: day,
					From: now, To: said[0].ResetAt, Before: []plan.Standing{before}}
				p.Watch = func(r plan.Run) bool {
					foretold[r.ID()] = fmt.Sprintf("%s %d %s", r.Outcome, r.Pages, r.Limit)
					f, ok := lost[r.ID()]
					if ok != r.Lost() || ok && f != fmt.Sprint(r.Pages, " ", r.Limit) {
						t.Errorf("%s: plan %s, forecast %s", r.ID(), foretold[r.ID()], f)
					}
					if r.Lost() {
						losing++
					}
					return true
				}
				p.Execute()
				if losing == 0 || losing != len(lost) {
					t.Errorf("%d runs are lost by the plan, %d by the forecast", losing, len(lost))
				}
				d.stopAfter(time.Until(p.To) - time.Second)
				done := w.outcomes()
				for id, f := range foretold {
					if done[id] != f {
						t.Errorf("%s: foretold %s, done %s", id, f, done[id])
					}
				}
			})
		})
	}
}
