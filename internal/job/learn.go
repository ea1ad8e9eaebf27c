package job

import (
	"context"
	"fmt"
	"slices"

	"quotabudget/internal/quota"
)

// What is learned from: the newest runs, as far as they are among so many entries of a bucket, if
// there are enough of them.
const (
	learnRuns    = 100
	learnEntries = 20_000
	// LearnLeast is how many runs there must be.
	LearnLeast = 3
	// LearnPercent is the share of the runs, in percent, that took no more than what is learned.
	LearnPercent = 95
)

// TooFewRunsError says that a job has not run often enough to learn from.
type TooFewRunsError struct {
	Job  string
	Runs int
}

// Error says how many there are, and how many are needed.
func (e *TooFewRunsError) Error() string {
	return fmt.Sprintf("the log has %d runs of job %s: %d are needed to learn what it takes",
		e.Runs, e.Job, LearnLeast)
}

// Learned is what most runs of the job took of each of the buckets, by the log: LearnPercent of the
// newest took no more. Errors: TooFewRunsError, and those of the ledger.
func Learned(ctx context.Context, b *quota.Budget, job string, buckets []string) ([]quota.Cost,
	error) {
	took := make(map[string]map[string]int64) // by bucket and run
	var runs []string
	for _, bucket := range buckets {
		entries, err := b.Ledger.Entries(ctx, quota.Query{Credential: b.Credential, Bucket: bucket,
			Limit: learnEntries})
		if err != nil {
			return nil, err
		}
		took[bucket] = make(map[string]int64)
		for _, e := range entries {
			run := e.Labels[quota.LabelRun]
			if e.Labels[quota.LabelJob] != job || run == "" {
				continue
			}
			took[bucket][run] += e.Units
			runs = append(runs, run)
		}
	}
	slices.Sort(runs) // by time
	runs = slices.Compact(runs)
	runs = runs[max(0, len(runs)-learnRuns):]
	if len(runs) < LearnLeast {
		return nil, &TooFewRunsError{job, len(runs)}
	}
	var costs []quota.Cost
	for _, bucket := range buckets {
		units := make([]int64, len(runs))
		for i, run := range runs {
			units[i] = took[bucket][run]
		}
		slices.Sort(units)
		if most := units[(len(units)*LearnPercent+99)/100-1]; most > 0 {
			costs = append(costs, quota.Cost{Bucket: bucket, Units: most})
		}
	}
	return costs, nil
}
