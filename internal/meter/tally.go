package meter

import (
	"context"
	"maps"
	"sync"

	"quotabudget/internal/quota"
)

// Tally adds up the units charged to the requests under one context, by bucket. It is safe for
// concurrent use.
type Tally struct {
	// Booked, if not nil, is called with the units booked by bucket for a call of unknown price,
	// possibly long after the request. Set it before use.
	Booked func(units map[string]int64)

	mu    sync.Mutex
	units map[string]int64
	last  quota.Decision
	held  bool
	open  int // number of unsettled holds
}

// Open reports whether some units are still held, so that the final charge may differ.
func (t *Tally) Open() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open > 0
}

// Held reports whether any request had an unknown price. See Booked.
func (t *Tally) Held() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held
}

// Units returns a copy of the units charged so far, by bucket.
func (t *Tally) Units() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	units := make(map[string]int64, len(t.units))
	maps.Copy(units, t.units)
	return units
}

// Sum returns the units charged so far in all buckets.
func (t *Tally) Sum() (sum int64) {
	for _, units := range t.Units() {
		sum += units
	}
	return sum
}

// Last returns the decision on the latest charge, or the zero Decision if there was none.
func (t *Tally) Last() quota.Decision {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// add adds sign times the units of a decision. holds is true for a call of unknown price.
func (t *Tally) add(d quota.Decision, sign int64, holds bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = d
	if holds {
		t.held = true
		t.open++
	}
	if !d.Unmetered && !d.Replayed {
		t.change(d.Units, sign)
	}
}

// change adds sign times units. The caller holds the lock.
func (t *Tally) change(units map[string]int64, sign int64) {
	if t.units == nil {
		t.units = make(map[string]int64)
	}
	for bucket, n := range units {
		t.units[bucket] += sign * n
	}
}

func (t *Tally) book(units map[string]int64) {
	if t.Booked != nil {
		t.Booked(units)
	}
}

// correct replaces the held units by the booked units.
func (t *Tally) correct(held, booked map[string]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	t.change(booked, 1)
	for bucket := range booked {
		t.units[bucket] -= held[bucket]
	}
}

type tallyKey struct{}

// WithTally returns a context whose requests add their charges to t.
func WithTally(ctx context.Context, t *Tally) context.Context {
	return context.WithValue(ctx, tallyKey{}, t)
}

// tallyOf returns the tally of a context, or an unused one.
func tallyOf(ctx context.Context) *Tally {
	if t, ok := ctx.Value(tallyKey{}).(*Tally); ok {
		return t
	}
	return new(Tally)
}
