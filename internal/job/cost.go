package job

import (
	"context"
	"errors"

	"quotabudget/internal/quota"
)

// LearnedOr is Learned of the buckets of some costs, and these while the runs are too few, or take
// nothing. Errors are those of the ledger.
func LearnedOr(ctx context.Context, b *quota.Budget, job string, costs []quota.Cost) (
	[]quota.Cost, error) {
	var buckets []string
	for _, c := range costs {
		buckets = append(buckets, c.Bucket)
	}
	learned, err := Learned(ctx, b, job, buckets)
	if _, few := errors.AsType[*TooFewRunsError](err); few || err == nil && len(learned) == 0 {
		return costs, nil
	}
	return learned, err
}
