package share

import (
	"math"
	"time"
)

// Share is what one lane may take in a window.
type Share struct {
	*Lane
	Wants     int64 // units of all its ticks in the window
	Entitled  int64 // units
	Spent     int64 // units, in the current window
	Runs      int64 // whole runs that Entitled still allows
	Remaining int64 // coming ticks
}

// Shares returns each lane's share of the tightest limit, the one that covers the smallest part of
// the lanes' demand. until is the reset, or for a sliding limit the end of the coming window. There
// are no shares while enough is left for every coming tick. at and left are as for Admit.
func (b *Book) Shares(at int64, left func(limit int) int64) (shares []Share, until time.Time) {
	var shortest *division
	least := math.Inf(1)
	for i := range b.limits {
		d := &b.limits[i]
		if !b.short(d, at, left(d.index)) {
			continue
		}
		if served := float64(d.capacity) / float64(max(d.window.wants, 1)); served < least {
			shortest, least = d, served
		}
	}
	if shortest == nil {
		return nil, until
	}
	w := shortest.window
	for i := range b.rule.Lanes {
		l, cost := &b.rule.Lanes[i], b.lanes[i].cost
		s := Share{Lane: l, Wants: w.ticks[i] * cost, Remaining: w.ticks[i],
			Entitled: int64(math.Round(shortest.units[i])), Spent: b.lanes[i].since(w.since(at))}
		unspent := s.Entitled
		if !w.slides {
			s.Remaining = l.Count(before(at), before(w.end))
			unspent -= s.Spent
		}
		if cost > 0 {
			s.Runs = min(max(unspent, 0)/cost, s.Remaining)
		}
		shares = append(shares, s)
	}
	if w.slides {
		return shares, moment(at + w.length)
	}
	return shares, moment(w.end)
}
