package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"quotabudget/internal/quota"
)

// take claims the key and the lock, and holds the units. It sets out.Done if there is nothing to
// do.
func (r *run) take(ctx context.Context) error {
	if r.Key != "" {
		state, err := r.claim(ctx, keyPrefix+r.Key, DeniedKey)
		if r.out.Done = state == quota.ClaimDone; err != nil || r.out.Done {
			return err
		}
	}
	if r.Lock != "" {
		if _, err := r.claim(ctx, lockPrefix+r.Lock, DeniedLock); err != nil {
			return err
		}
	}
	switch {
	case r.Call.Method == "" && r.Call.Units == 0 && len(r.Call.Costs) == 0:
		return nil
	case r.Key == "":
		return r.hold(ctx, "")
	}
	return r.holdOnce(ctx)
}

// claim waits its turn among other runs to claim a name.
func (r *run) claim(ctx context.Context, name, why string) (state quota.ClaimState, err error) {
	err = r.inTurn(ctx, []string{name}, func(ctx context.Context) (_ *DeniedError, err error) {
		state, err = r.leases.claims.Claim(ctx, r.leases.claim(name))
		switch {
		case err != nil:
		case state == quota.ClaimHeld:
			return &DeniedError{Why: why}, nil
		case state == quota.ClaimWon:
			r.leases.held, r.leases.renewed = append(r.leases.held, name), wallClock()
		}
		return nil, err
	})
	return state, err
}

// stillHeld renews the key and the lock if the run has waited for units since claiming them.
func (r *run) stillHeld(ctx context.Context) error {
	if len(r.leases.held) == 0 || wallClock().Sub(r.leases.renewed) < r.leases.ttl/3 {
		return nil
	}
	why := DeniedKey
	if slices.Contains(r.leases.held, lockPrefix+r.Lock) {
		why = DeniedLock
	}
	if err := r.leases.renew(ctx); err != nil || !r.leases.isLost() {
		return err
	}
	return &DeniedError{Why: why}
}

// hold sets the units aside, in turn with other runs that wait for the same buckets.
func (r *run) hold(ctx context.Context, key string) error {
	call := r.call()
	call.Key = key
	costs, err := r.budget.Costs(call)
	if err != nil {
		return err
	}
	if r.Max.Units > 0 {
		costs = r.Max.lower(costs)
		call.Costs = costs
	}
	var buckets []string
	for _, c := range costs {
		buckets = append(buckets, c.Bucket)
	}
	return r.inTurn(ctx, buckets, func(ctx context.Context) (*DeniedError, error) {
		d, err := r.budget.Hold(ctx, quota.ReserveRequest{Call: call, TTL: r.TTL,
			Lapse: r.Lapse, Note: r.note()})
		call.Again = true
		if _, denied := errors.AsType[*quota.DeniedError](err); denied {
			return &DeniedError{Decision: d}, nil
		}
		if err == nil {
			r.out.Reservation, r.out.ExpiresAt, r.out.Held = d.Reservation, d.ExpiresAt, d.Units
			r.replayed, r.heldAt = d.Replayed, d.At
			if d.Unmetered {
				r.passed = d
			}
		}
		return nil, err
	})
}

// note returns the text that describes the reservation in lists.
func (r *run) note() string {
	note := "job " + r.Name + ", run " + r.out.Run
	if quota.CheckText("note", note) != nil {
		return "run " + r.out.Run
	}
	return note
}

// holdOnce holds the units of a key. Any earlier run with the key has failed or died. A dead run's
// hold is taken over. Units booked for it are not charged again, unless runs book their actual
// usage: then each run has its own hold.
func (r *run) holdOnce(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		key := r.Key
		if attempt > 1 {
			key = fmt.Sprintf("%s#%d", r.Key, attempt)
		}
		if err := r.hold(ctx, key); err != nil || !r.replayed {
			return err
		}
		id := r.out.Reservation
		until, err := r.budget.Extend(ctx, id, r.TTL)
		if err == nil {
			r.out.ExpiresAt = until
			return nil
		}
		r.out.Reservation, r.out.Held = "", nil
		if !errors.Is(err, quota.ErrNoReservation) {
			return err
		}
		if r.Settle == SettleReport || r.Settle == SettleProxy {
			continue
		}
		switch _, err = r.budget.Settle(ctx, id, quota.Call{Labels: r.budget.Labels}); {
		case err == nil: // the earlier run was booked
			return nil
		case !errors.Is(err, quota.ErrNoReservation) && !errors.Is(err, quota.ErrKeyReused):
			return err
		}
	}
}
