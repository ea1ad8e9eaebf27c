package limit

import (
	"context"
	"math/bits"
	"slices"
	"sync"
	"time"
)

// Memory keeps charges in this process. Run and Sweep remove idle keys. It is safe for concurrent
// use.
type Memory struct {
	began   time.Time
	stripes [stripes]stripe
}

const stripes = 64 // one bit each in TakeAt

type stripe struct {
	mu     sync.Mutex
	tables []*table // one for each policy
	_      [32]byte // keeps the next lock in another cache line
}

// table holds the keys of one policy, in one of its maps.
type table struct {
	policy    *Policy
	histories map[Key]*history
	counters  map[Key]*counter
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{began: time.Now()}
}

// Now returns the time for Take in Unix microseconds: the start plus the time since, so that it
// does not jump with the machine's clock.
func (m *Memory) Now() int64 { return m.began.UnixMicro() + time.Since(m.began).Microseconds() }

// Take implements Store. It treats a split key as a whole one, and its error is always nil.
func (m *Memory) Take(_ context.Context, asks []Ask) (bool, error) {
	return m.TakeAt(m.Now(), asks), nil
}

// TakeAt is like Take, at a moment in Unix microseconds.
func (m *Memory) TakeAt(now int64, asks []Ask) bool {
	var locks uint64
	for i := range asks {
		locks |= 1 << stripeOf(asks[i].Key)
		if asks[i].Before != (Key{}) {
			locks |= 1 << stripeOf(asks[i].Before)
		}
	}
	for rest := locks; rest != 0; rest &= rest - 1 {
		m.stripes[bits.TrailingZeros64(rest)].mu.Lock()
	}
	for i := range asks {
		if a := &asks[i]; a.Before != (Key{}) && a.Before != a.Key {
			m.rename(a, now)
		}
	}
	allowed := true
	for i := range asks {
		a := &asks[i]
		a.Decision = m.table(a.Policy, a.Key).decide(a, now, a.Cost)
		allowed = allowed && a.Allowed
	}
	for i := range asks {
		a := &asks[i]
		counted := allowed || a.Policy.CountDenied && !a.Never
		if counted {
			m.table(a.Policy, a.Key).record(a, now)
		}
		switch {
		case allowed:
		case a.Allowed: // but another ask is denied
			a.Decision = m.table(a.Policy, a.Key).decide(a, now, 0)
		case counted: // the charge makes the wait longer
			a.Decision = m.table(a.Policy, a.Key).decide(a, now, a.Cost)
		}
		a.At = now
	}
	for rest := locks; rest != 0; rest &= rest - 1 {
		m.stripes[bits.TrailingZeros64(rest)].mu.Unlock()
	}
	return allowed
}

// stripeOf puts all policies of one key into one stripe.
func stripeOf(k Key) int { return int(k[0]) % stripes }

// table finds a policy's table by linear search: there are few, and the callers of a hot key wait
// while a stripe is locked.
func (m *Memory) table(p *Policy, k Key) *table {
	s := &m.stripes[stripeOf(k)]
	for _, t := range s.tables {
		if t.policy == p {
			return t
		}
	}
	return s.add(p)
}

// add returns the policy's table. It creates one unless a policy of the same name has one.
func (s *stripe) add(p *Policy) *table {
	for _, t := range s.tables {
		if t.policy.Name == p.Name {
			if t.policy.Algorithm != p.Algorithm {
				t.histories, t.counters = map[Key]*history{}, map[Key]*counter{}
			}
			t.policy = p
			return t
		}
	}
	t := &table{policy: p, histories: map[Key]*history{}, counters: map[Key]*counter{}}
	s.tables = append(s.tables, t)
	return t
}

// rename moves a key's charges to its new name, unless the new name has charges.
func (m *Memory) rename(a *Ask, now int64) {
	from, to := m.table(a.Policy, a.Before), m.table(a.Policy, a.Key)
	if h := from.histories[a.Before]; !h.idle(a.Policy, now) &&
		to.histories[a.Key].idle(a.Policy, now) {
		to.histories[a.Key] = h
		delete(from.histories, a.Before)
	}
	if c := from.counters[a.Before]; !c.idle(a.Policy, now) &&
		to.counters[a.Key].idle(a.Policy, now) {
		to.counters[a.Key] = c
		delete(from.counters, a.Before)
	}
}

func (t *table) decide(a *Ask, now, cost int64) Decision {
	if cost > a.Policy.Units {
		d := t.decide(a, now, 0)
		d.Allowed, d.Never = false, true
		return d
	}
	if a.Policy.Algorithm == Log {
		h := t.histories[a.Key]
		if h == nil {
			h = &history{}
		}
		return h.decide(a.Policy, now, cost)
	}
	c := t.counters[a.Key]
	if c == nil {
		c = &counter{}
	}
	return c.decide(a.Policy, now, cost)
}

func (t *table) record(a *Ask, now int64) {
	if a.Cost == 0 {
		return
	}
	if a.Policy.Algorithm == Log {
		h := t.histories[a.Key]
		if h == nil {
			h = &history{}
			t.histories[a.Key] = h
		}
		h.record(a.Policy, now, a.Cost)
		return
	}
	c := t.counters[a.Key]
	if c == nil {
		c = &counter{}
		t.counters[a.Key] = c
	}
	*c = c.record(a.Policy, now, a.Cost)
}

// Sweep removes the keys that are idle at a moment.
func (m *Memory) Sweep(now int64) {
	for i := range m.stripes {
		s := &m.stripes[i]
		s.mu.Lock()
		s.tables = slices.DeleteFunc(s.tables, func(t *table) bool {
			t.histories = sweep(t.histories, func(h *history) bool { return h.idle(t.policy, now) })
			t.counters = sweep(t.counters, func(c *counter) bool { return c.idle(t.policy, now) })
			return len(t.histories)+len(t.counters) == 0
		})
		s.mu.Unlock()
	}
}

// sweep deletes idle keys. A map never shrinks, so sweep replaces one that is mostly empty.
func sweep[S any](all map[Key]S, idle func(S) bool) map[Key]S {
	before := len(all)
	for key, s := range all {
		if idle(s) {
			delete(all, key)
		}
	}
	if before < 1024 || len(all) > before/4 {
		return all
	}
	fewer := make(map[Key]S, len(all))
	for key, s := range all {
		fewer[key] = s
	}
	return fewer
}

// Len returns the number of keys.
func (m *Memory) Len() (n int) {
	for i := range m.stripes {
		s := &m.stripes[i]
		s.mu.Lock()
		for _, t := range s.tables {
			n += len(t.histories) + len(t.counters)
		}
		s.mu.Unlock()
	}
	return n
}

// Run sweeps once per period until ctx ends.
func (m *Memory) Run(ctx context.Context, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			m.Sweep(m.Now())
		}
	}
}
