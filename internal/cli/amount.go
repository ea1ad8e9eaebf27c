package cli

import "quotabudget/internal/costs"

// Amount formats n of a unit for a table whose heading does not name the unit: "$12.40", or as
// Number does.
func (s Screen) Amount(of costs.Unit, n int64) string {
	if of.IsMoney() {
		return of.Text(n)
	}
	return s.Number(n)
}
