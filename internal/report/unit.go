package report

import "quotabudget/internal/costs"

// UnitOf returns the unit of a bucket or of a part; "units" if the price list names none.
func UnitOf(t *costs.Table, bucket string) costs.Unit {
	if b, ok := t.Bucket(bucket); ok {
		return b.Unit
	}
	return costs.Unit{Name: "units", Scale: 1}
}
