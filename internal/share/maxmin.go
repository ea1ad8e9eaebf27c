// Package share says who may take how much of what is left.
//
// When the units left until the reset will not serve every lane, they are shared over the day by weights with floors
// (MaxMin), and each lane spreads the runs it can still afford evenly over its ticks (Day.Admit). Everything here is
// integer arithmetic on figures that the caller read from the ledger: no clock, no state, so that several daemons agree
// and a restart changes nothing.
//
// Worked example: 100 units left, three lanes that want 80, 60 and 20 with equal weights. A third would be 33; the last
// wants only 20 and leaves 13, so that the other two get 40 each.
package share

// Claimant is one who wants units of what is shared. Negative figures count as 0.
type Claimant struct {
	Demand int64 // units it wants in all; it never gets more
	Weight int64 // its part in proportion to the others' weights; 0: only what the others leave; at most MaxWeight counts
	Floor  int64 // units it gets before weights count, as far as it wants them
	Taken  int64 // units it has already and cannot give back, part of what is shared; it never gets less
}

// MaxWeight is the largest weight that counts.
const MaxWeight = 1 << 31

// MaxMin shares capacity among the claimants and returns each one's units, in their order. The units it deals out are
// min(capacity, what all want), or what was taken already when that is more.
//
// A floor is the least a claimant gets, not something on top: one whose weight brings it more gets no more for its floor.
// Floors that together exceed the capacity are shared among themselves, the smallest first to be whole. What one does not
// want goes to the others by weight. Units that do not divide go to the largest remainders, then to the first in order; as
// with every method of largest remainders, more capacity can therefore cost a claimant one unit, when weights differ.
func MaxMin(capacity int64, claimants []Claimant) []int64 {
	spans := make([]span, len(claimants))
	for i, c := range claimants {
		taken := max(c.Taken, 0)
		spans[i] = span{low: taken, high: max(taken, min(c.Floor, c.Demand)), weight: 1}
	}
	got := fill(capacity, spans)
	got = fill(capacity, widen(spans, claimants, got, true))
	return fill(capacity, widen(spans, claimants, got, false))
}

// widen makes what each claimant got the least it gets, and lets those with a weight (or, afterwards, those without one)
// have up to their demand.
func widen(spans []span, claimants []Claimant, got []int64, weighty bool) []span {
	for i, c := range claimants {
		spans[i] = span{low: got[i], high: got[i], weight: min(max(c.Weight, 1), MaxWeight)}
		if (c.Weight > 0) == weighty {
			spans[i].high = max(got[i], c.Demand)
		}
	}
	return spans
}
