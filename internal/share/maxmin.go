package share

import (
	"cmp"
	"slices"
)

// Claimant is a claim on the shared units. Negative numbers count as 0.
type Claimant struct {
	Demand int64 // units it wants in all, and the most it gets
	// Weight is its proportion, at most MaxWeight. With 0 it gets only what the others leave.
	Weight   int64
	Priority int64 // above the floors, higher priorities are served first
	Floor    int64 // units it gets first, up to its demand
}

// MaxWeight is the largest weight that counts.
const MaxWeight = 1 << 31

// MaxMin divides capacity among the claimants and returns their units in order. It deals out
// min(capacity, total demand).
//
// A floor is the least a claimant gets, not an extra: if its weight brings it more, the floor
// adds nothing. Floors that together exceed the capacity are divided equally, so that the
// smallest are met first. Units a claimant does not want go to the others by weight. Indivisible
// units go to the largest remainders, then by order. As with every method of largest remainders,
// more capacity can cost a claimant one unit when weights differ.
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

// rank is the order of service: by priority, and claimants without a weight last.
type rank struct {
	weighty  bool
	priority int64
}

func (c Claimant) rank() rank { return rank{c.Weight > 0, c.Priority} }

// ranks returns the claimants' distinct ranks in order of service.
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

// widen sets each claimant's lower bound to what it got, and lets the claimants of one rank rise
// to their demand.
func widen(spans []span, claimants []Claimant, got []int64, r rank) []span {
	for i, c := range claimants {
		spans[i] = span{low: got[i], high: got[i], weight: min(max(c.Weight, 1), MaxWeight)}
		if c.rank() == r {
			spans[i].high = max(got[i], c.Demand)
		}
	}
	return spans
}
