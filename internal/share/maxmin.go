package share

import (
	"cmp"
	"math"
	"slices"
)

type claim struct {
	demand   float64 // units it wants in all, and the most it gets
	weight   float64 // proportion among the claims; with 0, only units that the others leave
	priority int64   // above the floors, higher priorities are served first
	floor    float64 // units it gets first, up to its demand
}

// maxMin divides capacity among the claims, and returns the units of each.
//
// A floor is a minimum, not an extra: if a claim gets more by its weight, the floor adds nothing.
// If the floors together exceed the capacity, each claim gets the same up to its floor, so that the
// smallest floors are met first. Units that one claim does not want go to the others by weight.
func maxMin(capacity float64, claims []claim) []float64 {
	spans := make([]span, len(claims))
	for i, c := range claims {
		spans[i] = span{high: min(c.floor, c.demand), weight: 1}
	}
	units := fill(capacity, spans)
	inOrder := slices.SortedFunc(slices.Values(claims), claim.compare)
	for _, rank := range slices.CompactFunc(inOrder,
		func(a, b claim) bool { return a.compare(b) == 0 }) {
		for i, c := range claims {
			spans[i] = span{low: units[i], high: units[i], weight: c.weight}
			if c.weight == 0 {
				spans[i].weight = 1
			}
			if c.compare(rank) == 0 {
				spans[i].high = max(units[i], c.demand)
			}
		}
		units = fill(capacity, spans)
	}
	return units
}

// compare orders claims by priority, those without a weight last.
func (c claim) compare(other claim) int {
	switch {
	case c.weight > 0 && other.weight == 0:
		return -1
	case c.weight == 0 && other.weight > 0:
		return 1
	}
	return cmp.Compare(other.priority, c.priority)
}

// span is the range of units that one claim can get.
type span struct{ low, high, weight float64 }

// fill raises all spans together like water, in proportion to their weights, until capacity is
// used up.
func fill(capacity float64, spans []span) []float64 {
	units := make([]float64, len(spans))
	raise := func(level float64) (sum float64) {
		for i, s := range spans {
			units[i] = max(s.low, min(s.high, level*s.weight))
			sum += units[i]
		}
		return sum
	}
	low, high := 0.0, 0.0
	for _, s := range spans {
		high = max(high, s.high/s.weight)
	}
	if raise(high) <= capacity {
		return units
	}
	for range 100 { // more than the bits of a float64
		if middle := (low + high) / 2; raise(middle) <= capacity {
			low = middle
		} else {
			high = middle
		}
	}
	raise(low)
	return units
}

// mulDiv returns a*b/c for non-negative numbers, capped at half of math.MaxInt64.
func mulDiv(a, b, c int64) int64 {
	return int64(min(float64(a)*float64(b)/float64(c), math.MaxInt64/2))
}
