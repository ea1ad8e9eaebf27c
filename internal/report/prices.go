package report

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// staleAfter is the maximum age of a price list's newest price, because upstreams change prices
// several times a year.
const staleAfter = 45 * 24 * time.Hour

// StalePrices reports whether the newest figure of a price list is too old. The zero time is now.
func StalePrices(t *costs.Table, now time.Time) bool {
	if now.IsZero() {
		now = time.Now()
	}
	for _, form := range []string{"2006-01-02", "2006-01"} {
		if at, err := time.Parse(form, t.Date); err == nil {
			return now.Sub(at) > staleAfter
		}
	}
	return false
}

// Unlisted returns the facts, such as models, of a credential's calls since a moment that have no
// row in the price list.
func (s Source) Unlisted(ctx context.Context, credential string, since time.Time) []string {
	names := map[string]bool{}
	buckets, _ := s.Ledger.BucketsOf(ctx, credential)
	for _, bucket := range quota.BucketNames(buckets) {
		sums, _ := s.Ledger.Sums(ctx, quota.SumQuery{Credential: credential, Bucket: bucket,
			Since: quota.GrainOf(since)})
		for _, sum := range sums {
			names[sum.Labels[quota.LabelUnlisted]] = true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// Few returns the beginning of a list of names.
func Few(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + " …"
	}
	return strings.Join(names, ", ")
}
