package report

import "quotabudget/internal/costs"

// UnitOf is what a bucket, or a part of one, counts: units, where the price list does not say.
func UnitOf(t *costs.Table, bucket string) costs.Unit {
	if b, ok := t.Bucket(bucket); ok {
		return b.Unit
	}
	return costs.Unit{Name: "units", Scale: 1}
}
