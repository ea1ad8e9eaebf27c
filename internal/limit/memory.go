package limit

import (
	"context"
	"crypto/rand"
	"sync"
	"time"
)

// Memory keeps charges in this process. It is safe for concurrent use.
type Memory struct {
	began time.Time
	salt  [saltLength]byte

	mu      sync.Mutex
	states  map[place]state
	sweepAt int64 // Unix µs of the next sweep
}

// place identifies the charges of a key under a policy, like a key in Redis. A policy with another
// algorithm or window starts empty.
type place struct {
	policy    string
	algorithm Algorithm
	window    time.Duration
	key       Key
}

// state is an algorithm's state of one key.
type state interface {
	decide(p *Policy, now, cost int64) Decision
	// record charges a cost, which need not fit.
	record(p *Policy, now, cost int64)
	// idle reports whether the key behaves like one that was never used.
	idle(p *Policy, now int64) bool
}

func newState(a Algorithm) state {
	if a == Log {
		return &history{}
	}
	return &counter{}
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	m := &Memory{began: time.Now(), states: make(map[place]state)}
	rand.Read(m.salt[:])
	return m
}

// Salt implements Store. Its error is always nil.
func (m *Memory) Salt(context.Context) ([]byte, error) { return m.salt[:], nil }

// Take implements Store. It treats a split key as a whole one, and its error is always nil. It
// ignores jumps of the machine's clock.
func (m *Memory) Take(_ context.Context, asks []Ask) (bool, error) {
	return m.TakeAt(m.began.UnixMicro()+time.Since(m.began).Microseconds(), asks), nil
}

// TakeAt is like Take, at a moment in Unix microseconds.
func (m *Memory) TakeAt(now int64, asks []Ask) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(now)
	allowed := true
	for i := range asks {
		a := &asks[i]
		a.Decision = m.decide(a, now, a.Cost)
		allowed = allowed && a.Allowed
	}
	for i := range asks {
		a := &asks[i]
		counted := allowed || a.Policy.CountDenied && !a.Never
		if counted {
			m.record(a, now)
		}
		switch {
		case allowed:
		case a.Allowed: // but another ask is denied
			a.Decision = m.decide(a, now, 0)
		case counted: // the charge makes the wait longer
			a.Decision = m.decide(a, now, a.Cost)
		}
		a.At = now
	}
	return allowed
}

func (a *Ask) place() place {
	return place{a.Policy.Name, a.Policy.Algorithm, a.Policy.Window, a.Key}
}

func (m *Memory) decide(a *Ask, now, cost int64) Decision {
	if cost > a.Policy.Units {
		d := m.decide(a, now, 0)
		d.Allowed, d.Never = false, true
		return d
	}
	s := m.states[a.place()]
	if s == nil {
		s = newState(a.Policy.Algorithm)
	}
	return s.decide(a.Policy, now, cost)
}

func (m *Memory) record(a *Ask, now int64) {
	if a.Cost == 0 {
		return
	}
	at := a.place()
	if m.states[at] == nil {
		m.states[at] = newState(at.algorithm)
	}
	m.states[at].record(a.Policy, now, a.Cost)
}

// sweep drops keys that have been idle for a minute, once a minute, so that a clock set back by up
// to a minute frees nothing. It copies the others, because a map never shrinks.
func (m *Memory) sweep(now int64) {
	if now < m.sweepAt {
		return
	}
	minute := time.Minute.Microseconds()
	m.sweepAt = now + minute
	active := make(map[place]state)
	for at, s := range m.states {
		if !s.idle(&Policy{Algorithm: at.algorithm, Window: at.window}, now-minute) {
			active[at] = s
		}
	}
	m.states = active
}

// Len returns the number of keys.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.states)
}
