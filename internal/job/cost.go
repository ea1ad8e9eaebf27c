package job

import "quotabudget/internal/quota"

// LearnedOr returns Learned for the buckets of costs, or costs themselves if there are too few runs
// or the runs take nothing.
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
