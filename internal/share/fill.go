package share

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// span is the range of units one claimant can get, 0 <= low <= high. It fills in proportion to
// its weight, which is at least 1.
type span struct{ low, high, weight int64 }

// level is a number of units per unit of weight, as a fraction.
type level struct{ units, weight int64 }

func (l level) less(m level) bool { return atMost(l.units, m.weight, m.units, l.weight, false) }

// stuckLow and stuckHigh report whether a span is at its lower or upper end at level l.
func (s span) stuckLow(l level) bool  { return atMost(s.weight, l.units, s.low, l.weight, false) }
func (s span) stuckHigh(l level) bool { return atMost(s.high, l.weight, s.weight, l.units, true) }

// fill raises all spans together like water, in proportion to their weights, until capacity is
// used up.
func fill(capacity int64, spans []span) []int64 {
	lows, highs := make([]int64, len(spans)), make([]int64, len(spans))
	for i, s := range spans {
		lows[i], highs[i] = s.low, s.high
	}
	if total(lows) >= capacity {
		return lows
	}
	if total(highs) <= capacity {
		return highs
	}
	at := waterline(capacity, spans)
	got, rest := lows, capacity
	var rising []int
	for i, s := range spans {
		switch {
		case s.stuckHigh(at):
			got[i] = s.high
		case !s.stuckLow(at):
			rising = append(rising, i)
			continue
		}
		rest -= got[i]
	}
	deal(rest, spans, rising, got)
	return got
}

// waterline returns the highest level within capacity at which a span starts or stops rising.
func waterline(capacity int64, spans []span) level {
	at, above := level{0, 1}, level{1, 0}
	for _, s := range spans {
		for _, l := range [2]level{{s.low, s.weight}, {s.high, s.weight}} {
			switch {
			case !at.less(l) || !l.less(above):
			case holds(capacity, spans, l):
				at = l
			default:
				above = l
			}
		}
	}
	return at
}

// holds reports whether capacity suffices to raise the spans to l.
func holds(capacity int64, spans []span, l level) bool {
	rest, weight := capacity, int64(0)
	for _, s := range spans {
		switch {
		case s.stuckHigh(l):
			rest -= s.high
		case s.stuckLow(l):
			rest -= s.low
		default:
			weight += s.weight
		}
		if rest < 0 {
			return false
		}
	}
	return atMost(weight, l.units, rest, l.weight, true)
}

// deal splits units among the spans of the given indices by weight: largest remainder, then
// order.
func deal(units int64, spans []span, among []int, got []int64) {
	var weight uint64
	for _, i := range among {
		weight += uint64(spans[i].weight)
	}
	remainder := make([]uint64, len(spans))
	rest := units
	for _, i := range among {
		hi, lo := bits.Mul64(uint64(units), uint64(spans[i].weight))
		part, rem := bits.Div64(hi, lo, weight)
		got[i], remainder[i] = int64(part), rem
		rest -= int64(part)
	}
	slices.SortStableFunc(among, func(a, b int) int {
		return cmp.Compare(remainder[b], remainder[a])
	})
	for _, i := range among[:rest] {
		got[i]++
	}
}

// mulDiv returns a*b/c for non-negative numbers, capped at math.MaxInt64.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	part, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(part, math.MaxInt64))
}

// mulDivSigned returns a*b/parts with a's sign, capped like mulDiv.
func mulDivSigned(a, b int64) int64 {
	if a < 0 {
		return -mulDiv(-a, b, parts)
	}
	return mulDiv(a, b, parts)
}

// atMost reports whether a*b <= c*d (or a*b < c*d if orEqual is false) for non-negative numbers
// of any size.
func atMost(a, b, c, d int64, orEqual bool) bool {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	hi2, lo2 := bits.Mul64(uint64(c), uint64(d))
	if hi != hi2 {
		return hi < hi2
	}
	return lo < lo2 || orEqual && lo == lo2
}

// total returns the sum, capped at math.MaxInt64.
func total(units []int64) int64 {
	var sum int64
	for _, u := range units {
		if u > math.MaxInt64-sum {
			return math.MaxInt64
		}
		sum += u
	}
	return sum
}
