package limit

import "sort"

// history is the state of Log: charges with their running totals, oldest first. Entries that have
// left the window are dropped when space is needed.
type history struct {
	entries []entry
	before  int64 // running total before the oldest entry
}

type entry struct {
	at    int64 // µs
	total int64 // units up to and including this entry
}

func (h *history) total() int64 {
	if n := len(h.entries); n > 0 {
		return h.entries[n-1].total
	}
	return h.before
}

// inside returns the index of the first entry inside a window of w µs. An entry at t is inside
// until t + w. If the clock is set back, entries that had left before the newest charge stay
// outside.
func (h *history) inside(w, now int64) int {
	since := h.stamp(now) - w
	if len(h.entries) == 0 || h.entries[0].at > since { // nothing has left
		return 0
	}
	return sort.Search(len(h.entries), func(i int) bool { return h.entries[i].at > since })
}

func (h *history) totalBefore(i int) int64 {
	if i == 0 {
		return h.before
	}
	return h.entries[i-1].total
}

func (h *history) decide(p *Policy, now, cost int64) Decision {
	w := p.window()
	first := h.inside(w, now)
	base := h.totalBefore(first)
	used := h.total() - base
	d := Decision{Allowed: cost == 0 || cost <= p.Units-used, Remaining: max(0, p.Units-used)}
	reset := now
	if n := len(h.entries); n > first {
		reset = h.entries[n-1].at + w
	}
	next := cost // the cost to wait for
	if d.Allowed {
		d.Remaining -= cost
		used += cost
		next = d.Remaining + 1
		if cost > 0 {
			reset = h.stamp(now) + w
		}
	}
	if next <= p.Units {
		// fits once the entries up to this total have left, which may include this charge
		missing, leaves := base+used+next-p.Units, reset
		i := first + sort.Search(len(h.entries)-first,
			func(i int) bool { return h.entries[first+i].total >= missing })
		if i < len(h.entries) {
			leaves = h.entries[i].at + w
		}
		d.NextAfter = micros(leaves - now)
	}
	if !d.Allowed {
		d.RetryAfter = d.NextAfter
	}
	d.ResetAfter = micros(reset - now)
	return d
}

// stamp returns the time of a new entry, so that a clock set back does not reorder entries.
func (h *history) stamp(now int64) int64 {
	if n := len(h.entries); n > 0 {
		return max(now, h.entries[n-1].at)
	}
	return now
}

// record appends an entry. Entries of denied calls may exceed the limit; then only the newest
// ones that reach it matter, because older ones leave first.
func (h *history) record(p *Policy, now, cost int64) {
	at, total := h.stamp(now), h.total()+cost
	drop := h.inside(p.window(), now)
	drop += sort.Search(len(h.entries)-drop,
		func(i int) bool { return total-h.entries[drop+i].total < p.Units })
	if drop > 0 && (len(h.entries) == cap(h.entries) || drop == len(h.entries)) {
		h.before = h.totalBefore(drop)
		h.entries = h.entries[:copy(h.entries, h.entries[drop:])]
	}
	h.entries = append(h.entries, entry{at, total})
}

func (h *history) idle(p *Policy, now int64) bool {
	return h.inside(p.window(), now) == len(h.entries)
}
