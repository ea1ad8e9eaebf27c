package share

// Loan is units of the day that one lane leaves and another may take, by their titles.
type Loan struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Units int64  `json:"units"`
}

// Loans says who leaves what to whom, measured against a cut by weight alone: what a region may
// take beyond its cut comes from those that take less than theirs, in proportion to what each of
// them leaves in all.
func Loans(shares []Share) []Loan {
	lenders := make([]Claimant, len(shares))
	for i, s := range shares {
		spare := max(s.Even-s.Entitled, 0)
		lenders[i] = Claimant{Demand: spare, Weight: spare}
	}
	var loans []Loan
	for _, to := range shares {
		if to.Entitled <= to.Even {
			continue
		}
		for i, units := range MaxMin(to.Entitled-to.Even, lenders) {
			if units == 0 {
				continue
			}
			loans = append(loans, Loan{shares[i].Title(), to.Title(), units})
			lenders[i].Demand -= units
		}
	}
	return loans
}
