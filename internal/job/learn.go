package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/quota"
)

// Bounds of the runs to learn from.
const (
	learnRuns    = 100
	learnEntries = 20_000
	// LearnLeast is the minimum number of runs.
	LearnLeast = 3
	// LearnPercent is the percentile of the runs' units that is learned.
	LearnPercent = 95
	// learnFor is the period of the runs in a mean. It includes each hour and each day of the week.
	// If it has too few runs, the newest ones are used.
	learnFor = 7 * 24 * time.Hour
)

// TooFewRunsError reports that a job has not run often enough to learn from.
type TooFewRunsError struct {
	Job  string
	Runs int
}

// Error returns the number of runs and the number required.
func (e *TooFewRunsError) Error() string {
	runs := fmt.Sprintf("%d runs", e.Runs)
	if e.Runs == 1 {
		runs = "1 run"
	}
	return fmt.Sprintf("the log has %s of job %s: %d are needed to learn its cost", runs,
		e.Job, LearnLeast)
}

// History is the log of all jobs' runs in some buckets.
type History struct {
	At      time.Time // by the ledger's clock
	entries map[string][]quota.Entry
}

// ReadHistory reads the log. Errors are those of the ledger.
func ReadHistory(ctx context.Context, b *quota.Budget, buckets []string) (h History, err error) {
	h.entries = make(map[string][]quota.Entry)
	if h.At, err = b.Ledger.Time(ctx); err != nil {
		return h, err
	}
	for _, bucket := range buckets {
		h.entries[bucket], err = b.Ledger.Entries(ctx, quota.Query{Credential: b.Credential,
			Bucket: bucket, Limit: learnEntries})
		if err != nil {
			return h, err
		}
	}
	return h, nil
}

type runUsage struct {
	run   string
	at    time.Time // of its last entry
	units map[string]int64
}

// runsOf returns the runs of a job, oldest first. Labels with the same name belong to one run.
func (h History) runsOf(job string, buckets []string, name func(run string) string) (
	runs []*runUsage) {
	byRun := make(map[string]*runUsage)
	for _, bucket := range buckets {
		for _, e := range h.entries[bucket] {
			run := name(e.Labels[quota.LabelRun])
			if e.Labels[quota.LabelJob] != job || run == "" {
				continue
			}
			r := byRun[run]
			if r == nil {
				r = &runUsage{run: run, units: make(map[string]int64)}
				byRun[run], runs = r, append(runs, r)
			}
			r.units[bucket] += e.Units
			if e.At.After(r.at) {
				r.at = e.At
			}
		}
	}
	slices.SortFunc(runs, func(a, b *runUsage) int { return strings.Compare(a.run, b.run) }) // by time
	return runs
}

// Learned returns the LearnPercent percentile of the units that the newest runs of the job took
// from each bucket. The error is a TooFewRunsError.
func (h History) Learned(job string, buckets []string) (costs []quota.Cost, err error) {
	runs := h.runsOf(job, buckets, func(run string) string { return run })
	runs = runs[max(0, len(runs)-learnRuns):]
	if len(runs) < LearnLeast {
		return nil, &TooFewRunsError{job, len(runs)}
	}
	learned := make(map[string]int64)
	for _, bucket := range buckets {
		units := make([]int64, len(runs))
		for i, r := range runs {
			units[i] = r.units[bucket]
		}
		slices.Sort(units)
		if percentile := units[(len(units)*LearnPercent+99)/100-1]; percentile > 0 {
			learned[bucket] = percentile
			costs = append(costs, quota.Cost{Bucket: bucket, Units: percentile})
		}
	}
	// Holding the parts also holds their sum, if a limit applies to it.
	return slices.DeleteFunc(costs, func(c quota.Cost) bool { return isSum(c.Bucket, learned) }), nil
}

// isSum reports whether a bucket has parts among the buckets of the units.
func isSum(whole string, units map[string]int64) bool {
	for part := range units {
		if part != whole && quota.WholeOf(part) == whole {
			return true
		}
	}
	return false
}

// Took returns the total units of the job's runs of the last week, by bucket, and the number of
// runs. The attempts of one tick are one run, and a run that took nothing is not in the log. It
// returns 0 runs if there are too few to learn from.
func (h History) Took(job string) (total []quota.Cost, runs int64) {
	var buckets []string
	for bucket := range h.entries {
		buckets = append(buckets, bucket)
	}
	slices.Sort(buckets)
	all := h.runsOf(job, buckets, func(run string) string {
		tick, _, _ := strings.Cut(run, "#")
		return tick
	})
	late := slices.DeleteFunc(slices.Clone(all),
		func(r *runUsage) bool { return r.at.Before(h.At.Add(-learnFor)) })
	if len(late) < LearnLeast {
		late = all[max(0, len(all)-learnRuns):]
	}
	if len(late) < LearnLeast {
		return nil, 0
	}
	for _, bucket := range buckets {
		cost := quota.Cost{Bucket: bucket}
		for _, r := range late {
			cost.Units += r.units[bucket]
		}
		if cost.Units > 0 {
			total = append(total, cost)
		}
	}
	return total, int64(len(late))
}

// LearnedOr returns Learned for the buckets of costs, or costs unchanged if there are too few runs
// or the runs took nothing.
func (h History) LearnedOr(job string, costs []quota.Cost) []quota.Cost {
	var buckets []string
	for _, c := range costs {
		buckets = append(buckets, c.Bucket)
	}
	learned, err := h.Learned(job, buckets)
	if err != nil || len(learned) == 0 {
		return costs
	}
	return learned
}

// Learned returns History.Learned of the current log. Errors include the ledger's.
func Learned(ctx context.Context, b *quota.Budget, job string, buckets []string) ([]quota.Cost,
	error) {
	h, err := ReadHistory(ctx, b, buckets)
	if err != nil {
		return nil, err
	}
	return h.Learned(job, buckets)
}
