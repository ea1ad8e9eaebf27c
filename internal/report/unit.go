package report

import "quotabudget/internal/costs"

// UnitOf returns what a bucket, or a part of one, counts; "units" if the price list names nothing.
func UnitOf(t *costs.Table, bucket string) costs.Unit {
	if b, ok := t.Bucket(bucket); ok {
		return b.Unit
	}
	return costs.Unit{Name: "units", Scale: 1}
}
