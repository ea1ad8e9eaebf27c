package share

import (
	"cmp"
	"slices"
)

// Claimant is one who wants units of what is shared. Negative figures count as 0.
type Claimant struct {
	Demand int64 // units it wants in all; it never gets more
	// Weight is its part in proportion to the others' weights, at most MaxWeight. With 0 it gets
	// only what the others leave.
	Weight   int64
	Priority int64 // above the floors, a higher one gets all it wants before any lower one
	Floor    int64 // units it gets before priorities and weights count, as far as it wants them
}

// MaxWeight is the largest weight that counts.
const MaxWeight = 1 << 31

// MaxMin shares capacity among the claimants and returns each one's units, in their order. The
// units it deals out are min(capacity, what all want).
//
// A floor is the least a claimant gets, not something on top: one whose weight brings it more gets
// no more for its floor. Floors that together exceed the capacity are shared among themselves, the
// smallest first to be whole. What one does not want goes to the others by weight. Units that do
// not divide go to the largest remainders, then to the first in order; as with every method of
// largest remainders, more capacity can therefore cost a claimant one unit, when weights differ.
func MaxMin(capacity int64, claimants []Claimant) []int64 {
	spans := make([]span, len(claimants))
	for i, c := range claimants {
		spans[i] = span{high: max(0, min(c.Floor, c.Demand)), weight: 1}
	}
	got := fill(capacity, spans)
	for _, r := range ranks(claimants) {
		got = fill(capacity, widen(spans, claimants, got, r))
	}
	return got
}

// rank is a turn to be served: by priority, and those without a weight after all others.
type rank struct {
	weighty  bool
	priority int64
}

func (c Claimant) rank() rank { return rank{c.Weight > 0, c.Priority} }

// ranks are those of the claimants, the first to be served first.
func ranks(claimants []Claimant) []rank {
	all := make([]rank, 0, len(claimants))
	for _, c := range claimants {
		if r := c.rank(); !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b rank) int {
		if a.weighty != b.weighty {
			if a.weighty {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.priority, a.priority)
	})
	return all
}

// widen makes what each claimant got the least it gets, and lets those of a rank have up to their
// demand.
func widen(spans []span, claimants []Claimant, got []int64, r rank) []span {
	for i, c := range claimants {
		spans[i] = span{low: got[i], high: got[i], weight: min(max(c.Weight, 1), MaxWeight)}
		if c.rank() == r {
			spans[i].high = max(got[i], c.Demand)
		}
	}
	return spans
}
