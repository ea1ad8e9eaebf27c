package report

import (
	"cmp"
	"slices"

	"quotabudget/internal/costs"
)

// UnitOf is what a bucket, or a part of one, counts: units, where the price list does not say.
func UnitOf(t *costs.Table, bucket string) costs.Unit {
	if b, ok := t.Bucket(bucket); ok {
		return b.Unit
	}
	return costs.Unit{Name: "units", Scale: 1}
}

// Units are what the charges of the rows count, with money last; units where there are none.
func (g Groups) Units() (all []costs.Unit) {
	for _, row := range g.Rows {
		for of := range row.Of {
			if !slices.Contains(all, of) {
				all = append(all, of)
			}
		}
	}
	slices.SortFunc(all, func(a, b costs.Unit) int {
		return cmp.Or(cmp.Compare(a.Scale, b.Scale), cmp.Compare(a.Name, b.Name))
	})
	if len(all) == 0 {
		all = []costs.Unit{{Name: "units", Scale: 1}}
	}
	return all
}
