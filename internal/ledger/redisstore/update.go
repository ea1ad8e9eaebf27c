package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"quotabudget/internal/quota"
)

const (
	maxBatch = 256 // decisions on one snapshot

	// A writer that has lost lostRaces races takes the credential's lock, so that none starves.
	lostRaces = 3
	lockTime  = 100 * time.Millisecond

	// patience is how long to repeat a decision while other processes change the bucket.
	patience = 10 * time.Second
)

// errBusy is the error after patience has passed.
var errBusy = errors.New("other processes keep changing the bucket")

// operation is a queued operation of one caller.
type operation = quota.Queued[work]

// work is one decision. The caller may leave before it is made.
type work struct {
	scope    quota.Scope
	decide   func(*quota.Account) (quota.Change, error)
	err      error
	panicked any // the value of a panic in decide, for its own caller
}

// Update implements ledger.Store. If ctx ends before the decision is made, nothing is written. If
// it ends later, the change may have been written.
func (s *Store) Update(ctx context.Context, scope quota.Scope,
	decide func(*quota.Account) (quota.Change, error)) error {
	q, o := s.updates.Get(scope.Credential), &operation{Work: work{scope: scope, decide: decide}}
	if err := q.Ask(ctx, o, false, func() { q.Send(maxBatch, s.decideAll) }); err != nil {
		return explain(err)
	}
	if o.Work.panicked != nil {
		panic(o.Work.panicked)
	}
	return o.Work.err
}

// decideAll decides operations on one credential, in as few steps as possible.
func (s *Store) decideAll(ctx context.Context, group []*operation) {
	for len(group) > 0 {
		n, err := s.decideSome(ctx, group)
		for _, o := range group[:n] {
			o.Work.err = cmp.Or(err, o.Work.err)
		}
		group = group[n:]
	}
}

// decideSome decides the first operations of the group, writes their changes, and returns how many.
// After an error, as far as it can tell, none was written.
func (s *Store) decideSome(ctx context.Context, group []*operation) (n int, err error) {
	credential := group[0].Work.scope.Credential
	scopes := make([]quota.Scope, len(group))
	for i, o := range group {
		scopes[i] = o.Work.scope
	}
	err = s.race(ctx, credential, func() (result string, err error) {
		n = len(group)
		snap, err := s.snapshot(ctx, credential, scopes)
		switch {
		case err != nil:
			return "", err
		case snap.locked:
			return locked, nil
		}
		n = snap.decide(group)
		result, err = s.commit(ctx, snap)
		if err == nil && result == done {
			for _, b := range snap.order {
				if len(b.added) > 0 {
					s.trim(ctx, credential, b.Name, snap.now)
				}
			}
		}
		return result, err
	})
	return n, err
}

// race repeats try until it succeeds. After a few lost races it takes the lock first.
func (s *Store) race(ctx context.Context, credential string, try func() (string, error)) (
	err error) {
	began, mine := time.Now(), false
	defer func() {
		if mine { // an empty commit releases the lock
			_, _ = s.send(ctx, &commands{credential: credential}, 0)
		}
	}()
	for lost := 0; ; {
		if time.Since(began) > patience {
			return notExecutedError{fmt.Errorf("%w: redis: %w", quota.ErrUnreachable, errBusy)}
		}
		result, mayTry := locked, true
		if lost >= lostRaces {
			mayTry, err = s.client.SetNX(ctx, lockKey(credential), s.holder, lockTime).Result()
			err, mine = explainRead(err), mine || mayTry
		}
		if mayTry {
			result, err = try()
		}
		switch {
		case err != nil || result == done:
			return err
		case result != locked:
			lost++
		case !quota.Pause(ctx, time.Millisecond+rand.N(2*time.Millisecond)):
			return explain(ctx.Err())
		}
	}
}

// decide makes the first decisions of the group, each based on the previous ones, and returns how
// many. A decision that rewrites entries is the only one with a change.
func (snap *snapshot) decide(group []*operation) int {
	changed := false
	for i, o := range group {
		ch, err := snap.run(&o.Work)
		if o.Work.err = err; err != nil {
			continue
		}
		rewrites := false
		for _, b := range ch.Buckets {
			rewrites = rewrites || b.From != 0
		}
		if rewrites && changed {
			return i
		}
		if o.Work.err = snap.apply(o.Work.scope, ch); rewrites {
			return i + 1
		}
		changed = changed || len(ch.Buckets) > 0
	}
	return len(group)
}

// run makes one decision. It stores a panic for the operation's own caller.
func (snap *snapshot) run(w *work) (ch quota.Change, err error) {
	defer func() {
		if w.panicked = recover(); w.panicked != nil {
			ch, err = quota.Change{}, fmt.Errorf("panic: %v", w.panicked)
		}
	}()
	a, err := snap.account(w.scope)
	if err != nil {
		return ch, err
	}
	return w.decide(a)
}

// View implements ledger.Store. It repeats a read that needed more than the snapshot if the bucket
// changed meanwhile other than by new entries.
func (s *Store) View(ctx context.Context, scope quota.Scope,
	read func(*quota.Account) error) (err error) {
	var failed error
	err = s.race(ctx, scope.Credential, func() (string, error) {
		snap, err := s.snapshot(ctx, scope.Credential, []quota.Scope{scope})
		if err != nil {
			return "", err
		}
		a, err := snap.account(scope)
		if err == nil {
			err = read(a)
		}
		failed = err
		return s.commit(ctx, snap)
	})
	if err != nil {
		return err
	}
	return failed
}
