package job_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"quotabudget/internal/job"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// requests makes a job send requests through its ledger, each of the same units of default.
func requests(t *testing.T, b *bench, j *job.Job, send func(*quota.Budget)) {
	j.Settle = job.SettleProxy
	j.Prepare = func(_ context.Context, p job.Prepared) ([]string, func(), error) {
		budget := *j.Budget
		budget.Ledger, budget.Labels = p.Ledger, p.Labels
		return nil, func() { send(&budget) }, nil
	}
}

// TestMax: a run's requests stay within its ceiling, whether they draw on the hold, are charged
// beyond it, or hold an estimate. The outcome has the units that the ledger booked.
func TestMax(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.limits[0].Units = 1000
		total := int64(0)
		for _, c := range []struct {
			name              string
			hold, max, each   int64
			allowed, allowed2 int64 // units of charges, and of calls that settle 2 of the 3 they hold
		}{
			{"no ceiling", 4, 0, 3, 30, 20},
			{"nothing held", 0, 7, 3, 6, 0},
			{"drawn", 7, 7, 3, 6, 0},
			{"beyond the hold", 4, 9, 2, 8, 0},
			{"lowered hold", 40, 5, 1, 5, 0},
			{"estimates", 0, 9, 1, 3, 4}, // a third would hold up to 10
		} {
			j := b.job("true")
			j.Call = quota.Call{Units: c.hold}
			j.Max = job.Ceiling{Units: c.max}
			var took, took2 int64
			requests(t, b, j, func(budget *quota.Budget) {
				n := 10
				if c.name == "estimates" {
					n = 3
				}
				for range n {
					d, err := budget.Charge(t.Context(), quota.Call{Units: c.each})
					must(t, err)
					if d.Allowed {
						took += c.each
					} else if d.Limit != quota.RunMax || !d.RetryAt.IsZero() {
						t.Errorf("%s: denied by %q until %v", c.name, d.Limit, d.RetryAt)
					}
				}
				for range 10 {
					call := quota.Call{Units: 3}
					d, err := budget.Hold(t.Context(), quota.ReserveRequest{Call: call,
						TTL: time.Minute, Lapse: quota.LapseCharge})
					if _, denied := errors.AsType[*quota.DeniedError](err); denied {
						continue
					}
					must(t, err)
					_, err = budget.Book(t.Context(), budget.NewBooking(d, quota.Call{
						Costs: []quota.Cost{{Bucket: "default", Units: 2}}}, quota.LapseCharge))
					must(t, err)
					took2 += 2
				}
			})
			out := b.run(j)
			if total += took + took2; took != c.allowed || took2 != c.allowed2 ||
				out.Took["default"] != took+took2 {
				t.Errorf("%s: %d and %d units allowed, %d took; want %d and %d", c.name, took,
					took2, out.Took["default"], c.allowed, c.allowed2)
			}
			if c.max > 0 && out.Denied == 0 {
				t.Errorf("%s: no denial is counted", c.name)
			}
			b.wantSpent("default", total)
		}
	})
}

// TestMaxOfABucket: a ceiling on one bucket counts that alone, and a cancelled charge does not
// count.
func TestMaxOfABucket(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.limits[0].Units, b.limits[1].Units = 1000, 1000
		j := b.job("true")
		j.Call = quota.Call{Units: 2}
		j.Max = job.Ceiling{Units: 2, Bucket: "search_list"}
		var allowed int
		requests(t, b, j, func(budget *quota.Budget) {
			for range 2 {
				_, cancel, err := budget.Spend(t.Context(), quota.Call{Method: "search"})
				must(t, err)
				must(t, cancel(t.Context()))
			}
			for range 5 {
				d, err := budget.Charge(t.Context(), quota.Call{Method: "search"})
				must(t, err)
				if d.Allowed {
					allowed++
				}
			}
			both := quota.Call{Costs: []quota.Cost{{Bucket: "default", Units: 5},
				{Bucket: "search_list", Units: 1}}}
			d, err := budget.Charge(t.Context(), both)
			must(t, err)
			if d.Allowed || len(d.Units) != 1 || d.Units["search_list"] != 1 {
				t.Errorf("both buckets: %+v", d)
			}
			d, err = budget.Charge(t.Context(), quota.Call{Units: 50})
			must(t, err)
			if !d.Allowed {
				t.Errorf("another bucket: %+v", d)
			}
		})
		out := b.run(j)
		if allowed != 2 || out.Took["default"] != 54 || out.Took["search_list"] != 2 {
			t.Errorf("%d searches were allowed, %v took", allowed, out.Took)
		}
		b.wantSpent("search_list", 2)
		b.wantSpent("default", 54)
		b.ledger.Flush(time.Minute)
		denials, err := b.ledger.Denials(t.Context(), "key1", time.Now().Add(-time.Hour))
		must(t, err)
		for _, d := range denials {
			if d.Bucket != "search_list" || d.Units != d.Count {
				t.Errorf("counted %+v", d)
			}
		}
	})
}

// TestMaxAfterALostAnswer: a charge whose answer was lost counts against the ceiling, because the
// ledger may have made it.
func TestMaxAfterALostAnswer(t *testing.T) {
	t.Parallel()
	breaker := redistest.NewBreaker(t)
	breaker.Forward(redistest.Start(t, redistest.Options{}).Addr)
	b := open(t, "redis://"+breaker.Addr)
	j := b.job("true")
	j.Call, j.Max = quota.Call{}, job.Ceiling{Units: 3}
	requests(t, b, j, func(budget *quota.Budget) {
		charge := func() (quota.Decision, error) {
			return budget.Charge(t.Context(), quota.Call{Units: 1})
		}
		_, err := charge()
		must(t, err)
		breaker.LoseNext()
		if _, err = charge(); !quota.IsAway(err) {
			t.Errorf("the answer was not lost: %v", err)
		}
		d, err := charge()
		must(t, err)
		beyond, err := charge()
		must(t, err)
		if !d.Allowed || beyond.Limit != quota.RunMax {
			t.Errorf("the third is %+v, the fourth %+v", d, beyond)
		}
	})
	b.run(j)
}

// TestLearnedOfParts: under a limit across parts, the runs' units in the parts are learned, but not
// their sum. A report without a bucket is for the part held.
func TestLearnedOfParts(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.limits[0].Across, b.limits[0].Units = true, 1000
		budget := b.job("true").Budget
		budget.Unlimited, budget.Split = true, []string{"default"}
		for _, run := range []string{"1", "2", "3"} {
			_, err := budget.Charge(t.Context(), quota.Call{Bucket: "default/a", Units: 5,
				Labels: quota.Labels{quota.LabelJob: "n", quota.LabelRun: run}})
			must(t, err)
		}
		b.wantSpent("default", 15)
		got, err := job.Learned(t.Context(), budget, "n", []string{"default", "default/a"})
		must(t, err)
		if len(got) != 1 || got[0] != (quota.Cost{Bucket: "default/a", Units: 5}) {
			t.Errorf("learned %+v", got)
		}
		j := b.job("echo units=2 >&3")
		j.Budget, j.Call, j.Settle = budget, quota.Call{Costs: got}, job.SettleReport
		if out := b.run(j); out.Took["default/a"] != 2 {
			t.Errorf("took %v", out.Took)
		}
		b.wantSpent("default", 17)
	})
}

// TestPartsLeftOut: under a limit across parts, what is booked for a part that the report or the
// settlement leaves out also counts in their sum, and in that of a label's value.
func TestPartsLeftOut(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.limits[0].Across, b.limits[0].Units = true, 1000
		j := b.job("echo bucket=default/a units=2 >&3")
		j.Settle, j.Call = job.SettleReport, quota.Call{Method: "m", Costs: []quota.Cost{
			{Bucket: "default/a", Units: 5}, {Bucket: "default/b", Units: 3}}}
		perTeam := quota.LabelLimit{Limit: b.limits[0], Label: "team"}
		j.Budget.Unlimited, j.Budget.Split = true, []string{"default"}
		j.Budget.PerLabel = []quota.LabelLimit{perTeam}
		j.Budget.Labels = quota.Labels{"team": "ci"}
		wantSpent := func(units int64) {
			b.wantSpent("default", units)
			of, err := j.Budget.BucketUsage(t.Context(), quota.LabelBucket("default", "team", "ci"))
			must(t, err)
			if got := of.Limits[0].Used; got != units {
				t.Errorf("%d units spent by the team, want %d", got, units)
			}
		}
		if out := b.run(j); out.Took["default"] != 5 {
			t.Errorf("took %v", out.Took)
		}
		wantSpent(5)
		j.Budget.Log = j.Log
		lost := func() quota.Decision {
			d, err := j.Budget.Hold(t.Context(), quota.ReserveRequest{Call: j.Call, TTL: time.Minute})
			must(t, err)
			_, err = j.Budget.Release(t.Context(), d.Reservation)
			must(t, err)
			return d
		}
		used := quota.Call{Costs: []quota.Cost{{Bucket: "default/a", Units: 2}}}
		_, err := j.Budget.Book(t.Context(), j.Budget.NewBooking(lost(), used, quota.LapseCharge))
		must(t, err)
		wantSpent(10)
		used.Costs = append(used.Costs, quota.Cost{Bucket: "default/b", Units: 1})
		_, err = j.Budget.SettleLost(t.Context(), lost().Reservation, used)
		must(t, err)
		wantSpent(13)
	})
}

// TestPassedParts: the sum of the parts of a run that passed without the ledger is booked once.
func TestPassedParts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	b := open(t, server.URL())
	b.limits[0].Across, b.limits[0].Units = true, 1000
	j := b.job("echo bucket=default/a units=2 >&3")
	j.Settle, j.Call = job.SettleReport, quota.Call{Method: "m", Costs: []quota.Cost{
		{Bucket: "default/a", Units: 5}, {Bucket: "default/b", Units: 3}}}
	journal := &ledger.Journal{Path: filepath.Join(t.TempDir(), "journal.db"),
		Ledger: server.URL(), Credential: "key1"}
	t.Cleanup(func() { journal.Close() })
	j.Budget.Unlimited, j.Budget.Split, j.Budget.Open = true, []string{"default"}, []string{"m"}
	j.Budget.Journal, j.Budget.Log = journal, j.Log
	server.Kill()
	if out := b.run(j); out.Took["default"] != 5 {
		t.Errorf("took %v", out.Took)
	}
	server.Restart(t)
	must(t, quota.Patience{Total: time.Minute, Attempt: time.Minute}.Retry(t.Context(),
		j.Budget.Post))
	b.wantSpent("default", 5)
}

// TestLabelsOfDraws: what requests draw counts for the labels of the run's hold, and what they are
// charged beyond it for their own.
func TestLabelsOfDraws(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.limits[0].Units = 1000
		j := b.job("true")
		j.Budget.PerLabel = []quota.LabelLimit{{Limit: b.limits[0], Label: "team"}}
		j.Budget.Labels = quota.Labels{"team": "ci"}
		requests(t, b, j, func(budget *quota.Budget) {
			for _, call := range []quota.Call{{Units: 3}, {Method: "search"}, {Units: 1}} {
				call.Labels = quota.Labels{"team": "web"}
				_, cancel, err := budget.Spend(t.Context(), call)
				must(t, err)
				if call.Units == 1 {
					must(t, cancel(t.Context()))
				}
			}
		})
		b.run(j)
		b.wantSpent("default", 5)
		for value, want := range map[string]int64{"ci": 3, "web": 2} {
			limits := j.Budget.LimitsOn(quota.LabelBucket("default", "team", value))
			usage, err := b.ledger.Usage(t.Context(), "key1", limits)
			must(t, err)
			if bucket := usage.Buckets[0]; bucket.Limits[0].Used != want || bucket.Held != 0 {
				t.Errorf("%s: %d units spent, %d held; want %d and 0", value, bucket.Limits[0].Used,
					bucket.Held, want)
			}
		}
	})
}

// TestCancelledDraw: the units that a cancelled request has drawn return to the hold.
func TestCancelledDraw(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		j := b.job("true")
		j.Call = quota.Call{Units: 4}
		requests(t, b, j, func(budget *quota.Budget) {
			_, cancel, err := budget.Spend(t.Context(), quota.Call{Units: 3})
			must(t, err)
			must(t, cancel(t.Context()))
			usage, err := j.Budget.Usage(t.Context())
			must(t, err)
			if held := usage.Buckets[0].Held; held != 4 {
				t.Errorf("%d units are held, want 4", held)
			}
		})
		b.run(j)
		b.wantSpent("default", 0)
	})
}

// TestReportOfDrawnUnits: a report includes the units that the requests have drawn, which are
// already booked.
func TestReportOfDrawnUnits(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		j := b.job("echo units=5 >&3")
		j.Call = quota.Call{Units: 8}
		requests(t, b, j, func(budget *quota.Budget) {
			_, err := budget.Charge(t.Context(), quota.Call{Units: 3})
			must(t, err)
		})
		j.Settle = job.SettleReport
		if out := b.run(j); out.Took["default"] != 5 {
			t.Errorf("took %v", out.Took)
		}
		b.wantSpent("default", 5)
	})
}
