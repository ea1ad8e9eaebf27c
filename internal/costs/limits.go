package costs

import (
	"time"

	"quotabudget/internal/quota"
)

// defaultHeadroom is the share of a limit kept for people where nothing is configured, in percent.
const defaultHeadroom = 5

// DefaultLimits is what applies where nothing is configured: each bucket's daily units twice, in
// any 24 hours and in the upstream's calendar day, with a headroom of 5 %, rounded down so that a
// small limit is not all headroom.
func (t *Table) DefaultLimits() []quota.Limit {
	var limits []quota.Limit
	for _, b := range t.Buckets() {
		for _, w := range []quota.Window{quota.Sliding(24 * time.Hour), b.Reset} {
			limits = append(limits, quota.Limit{
				Bucket: b.Name, Units: b.Daily, Headroom: b.Daily * defaultHeadroom / 100,
				Window: w,
			})
		}
	}
	return limits
}
