package share

// Loan is units that one lane leaves and another may take. It names the lanes by title.
type Loan struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Units int64  `json:"units"`
}

// Loans computes the loans between lanes, relative to a division by weight alone. A lane's excess
// is borrowed from the lanes that take less than their part, in proportion to what each of them
// leaves.
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
