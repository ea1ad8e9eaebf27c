package limit

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// Sharded splits the keys of policies with Shards into parts, and asks a store for each part
// separately. The units are split too, so the parts together never admit more than the limit.
//
// A call starts at a random part, and while it is denied borrows from the others, one after
// another. It fits if one part has room for its whole cost. So with a cost of 1 no unit stays
// unused, and with a cost of c at most Shards * (c-1) do.
//
// Parts are in different slots of a cluster, so one step cannot cover them and the rest of the
// request: they are asked last, in the order of the asks. If a part denies the request, the asks
// before it have been charged.
type Sharded struct {
	// Step decides asks that one step can decide: whole keys, or one part.
	Step func(ctx context.Context, asks []Ask) (bool, error)

	mu   sync.Mutex
	full map[part]denial
}

// part is a part of a key that denied a cost.
type part struct {
	policy string // includes the part's number
	key    Key
	cost   int64
}

// denial is a part's answer, and when it was given.
type denial struct {
	Decision
	asked time.Time
}

// Denials of full parts are remembered for a moment, so that a denied hot key costs the store
// nothing.
const (
	rememberDenial = time.Second
	mostDenials    = 10_000
)

// Take implements Store.
func (s *Sharded) Take(ctx context.Context, asks []Ask) (bool, error) {
	whole := make([]Ask, 0, len(asks))
	for _, a := range asks {
		if a.Policy.Shards <= 1 {
			whole = append(whole, a)
		}
	}
	allowed := true
	if len(whole) > 0 {
		var err error
		if allowed, err = s.Step(ctx, whole); err != nil {
			return false, err
		}
	}
	for i := range asks {
		a := &asks[i]
		if a.Policy.Shards <= 1 {
			a.Decision, whole = whole[0].Decision, whole[1:]
			continue
		}
		cost := a.Cost
		if !allowed && !a.Policy.CountDenied {
			cost = 0
		}
		fits, err := s.parts(ctx, a, cost)
		if err != nil {
			return false, err
		}
		allowed = allowed && fits
	}
	return allowed, nil
}

// parts asks one part after another until one allows the cost. If none does, it returns the
// answer of the part that will allow it first.
func (s *Sharded) parts(ctx context.Context, a *Ask, cost int64) (bool, error) {
	n := a.Policy.Shards
	first := rand.IntN(n)
	for i := range n {
		at := (first + i) % n
		policy := *a.Policy
		policy.Shards = 0
		policy.Name += "/" + strconv.Itoa(at+1)
		policy.Units = Part(a.Policy.Units, n, at)
		one := []Ask{{Policy: &policy, Key: a.Key, Before: a.Before, Cost: cost, Part: at + 1}}
		if err := s.ask(ctx, one); err != nil {
			return false, err
		}
		if i == 0 || sooner(one[0].Decision, a.Decision) {
			a.Decision = one[0].Decision
		}
		if a.Allowed {
			return true, nil
		}
	}
	return false, nil
}

// Part returns the number of units of part at of n.
func Part(units int64, n, at int) int64 {
	each, rest := units/int64(n), units%int64(n)
	if int64(at) < rest {
		each++
	}
	return each
}

func sooner(d, than Decision) bool {
	switch {
	case d.Allowed != than.Allowed:
		return d.Allowed
	case d.Never != than.Never:
		return than.Never
	}
	return d.RetryAfter < than.RetryAfter
}

// ask asks one part. It repeats a remembered denial of the same cost until the time the part
// named.
func (s *Sharded) ask(ctx context.Context, one []Ask) error {
	a := &one[0]
	p := part{a.Policy.Name, a.Key, a.Cost}
	now := time.Now()
	s.mu.Lock()
	d, known := s.full[p]
	s.mu.Unlock()
	if gone := now.Sub(d.asked); known && gone < min(d.RetryAfter, rememberDenial) {
		a.Decision = d.Decision
		a.At += gone.Microseconds()
		a.RetryAfter = (a.RetryAfter - gone).Truncate(time.Microsecond)
		a.NextAfter = (a.NextAfter - gone).Truncate(time.Microsecond)
		a.ResetAfter = (a.ResetAfter - gone).Truncate(time.Microsecond)
		return nil
	}
	allowed, err := s.Step(ctx, one)
	if err != nil || allowed || a.Policy.CountDenied {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full == nil || len(s.full) >= mostDenials {
		s.full = map[part]denial{}
	}
	s.full[p] = denial{a.Decision, now}
	return nil
}
