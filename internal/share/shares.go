package share

import (
	"math"
	"time"
)

// Share is what one lane may take in a window.
type Share struct {
	*Lane
	Wants     int64 // units of all its ticks in the window
	Even      int64 // units by weight alone, whatever the lanes want
	Entitled  int64 // units
	Spent     int64 // units, in the current window
	Runs      int64 // whole runs that Entitled leaves
	Remaining int64 // coming ticks
}

// Shares is a limit divided among the lanes.
type Shares struct {
	Limit int       // index in Rule.Limits
	Left  int64     // units
	Until time.Time // the reset, or for a sliding limit the end of the coming window
	Lanes []Share
}

// Shares returns each lane's share of the tightest limit, the one that covers the smallest part
// of the lanes' demand. It is false while enough is left for every coming tick. at and left are
// as for Admit.
func (b *Book) Shares(at int64, left func(limit int) int64) (Shares, bool) {
	var shortest *division
	var least float64
	var units int64
	for i := range b.limits {
		l := &b.limits[i]
		n := left(l.index)
		if !b.short(l, at, n) {
			continue
		}
		served := float64(l.capacity) / float64(max(l.window.wants, 1))
		if shortest == nil || served < least {
			shortest, least, units = l, served, n
		}
	}
	if shortest == nil {
		return Shares{}, false
	}
	return Shares{shortest.index, units, shortest.window.ends(at), b.shares(shortest, at)}, true
}

func (b *Book) shares(d *division, at int64) []Share {
	w := d.window
	claimants, evens := make([]Claimant, len(b.lanes)), make([]Claimant, len(b.lanes))
	out := make([]Share, len(b.lanes))
	for i := range b.rule.Lanes {
		l, cost := &b.rule.Lanes[i], b.rule.Cost(i)
		s := Share{Lane: l, Wants: w.ticks[i] * cost, Remaining: w.ticks[i]}
		if !w.slides {
			s.Remaining = l.Count(before(at), before(w.end))
		}
		s.Spent = b.lanes[i].since(w.since(at))
		claimants[i] = Claimant{s.Wants, l.Weight, l.Priority, l.floorOf(w)}
		if cost > d.capacity {
			claimants[i].Demand = 0 // its run does not fit
		}
		evens[i] = Claimant{Demand: math.MaxInt64, Weight: l.Weight}
		out[i] = s
	}
	even := MaxMin(d.capacity, evens)
	for i, units := range MaxMin(d.capacity, claimants) {
		s, cost := &out[i], b.rule.Cost(i)
		s.Entitled, s.Even = units, even[i]
		taken := s.Spent
		if w.slides {
			taken = 0
		}
		if cost > 0 {
			s.Runs = min(max(units-taken, 0)/cost, s.Remaining)
		}
	}
	return out
}

func (w *window) ends(at int64) time.Time {
	if w.slides {
		return moment(at + w.length)
	}
	return moment(w.end)
}
