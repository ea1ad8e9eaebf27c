package meter

import (
	"context"
	"maps"
	"sync"

	"quotabudget/internal/quota"
)

// Tally adds up what the requests under one context were charged, by bucket. It is safe for
// concurrent use.
type Tally struct {
	// Booked, if not nil, is called with the units booked by bucket for a call of an unknown price,
	// possibly long after the request. Set it before use.
	Booked func(units map[string]int64)

	mu    sync.Mutex
	units map[string]int64
	last  quota.Decision
	held  bool
	open  int // holds that are not settled
}

// Open reports whether some of the units are held yet, and what is charged may be less or more.
func (t *Tally) Open() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open > 0
}

// Held reports whether what the requests are charged is known only after them: see Booked.
func (t *Tally) Held() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held
}

func (t *Tally) hold() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = true
	t.open++
}

// Units is a copy of what has been charged so far.
func (t *Tally) Units() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.units)
}

// Sum is what has been charged so far over all buckets.
func (t *Tally) Sum() (sum int64) {
	for _, units := range t.Units() {
		sum += units
	}
	return sum
}

// Last is the decision on the latest charge, the zero one if there was none.
func (t *Tally) Last() quota.Decision {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

func (t *Tally) add(d quota.Decision, sign int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = d
	if d.Unmetered || d.Replayed {
		return
	}
	if t.units == nil {
		t.units = make(map[string]int64)
	}
	for bucket, units := range d.Units {
		t.units[bucket] += sign * units
	}
}

// book tells Booked.
func (t *Tally) book(units map[string]int64) {
	if t != nil && t.Booked != nil {
		t.Booked(units)
	}
}

// correct puts what was booked in place of what was held.
func (t *Tally) correct(held, booked map[string]int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	for bucket, units := range booked {
		t.units[bucket] += units - held[bucket]
	}
}

type tallyKey struct{}

// WithTally adds what requests under the context are charged to t.
func WithTally(ctx context.Context, t *Tally) context.Context {
	return context.WithValue(ctx, tallyKey{}, t)
}

func tallyOf(ctx context.Context) *Tally {
	t, _ := ctx.Value(tallyKey{}).(*Tally)
	return t
}
