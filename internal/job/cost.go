package job

import "quotabudget/internal/quota"

// LearnedOr is Learned of the buckets of some costs, and these while the runs are too few, or take
// nothing.
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
