package cli

import "quotabudget/internal/costs"

// Amount writes so many of a unit in a table, whose columns do not name it: "$12.40", or as Number
// does.
func (s Screen) Amount(of costs.Unit, n int64) string {
	if of.IsMoney() {
		return of.Text(n)
	}
	return s.Number(n)
}
