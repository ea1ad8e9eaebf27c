package sqliteledger

import (
	"context"
	"fmt"

	"quotabudget/internal/quota"
)

// Reserve implements quota.Ledger.
func (l *Ledger) Reserve(ctx context.Context, r quota.Reserve) (quota.Decision, error) {
	name, _, _ := quota.ParseReservation(r.ID)
	cost := quota.Cost{Bucket: name, Units: r.Units}
	if err := r.Check(); err != nil {
		return never([]quota.Cost{cost}, err), err
	}
	d, err := l.decide(ctx, func(s *session) (quota.Decision, error) { return s.reserve(r, cost) })
	if err != nil {
		return never([]quota.Cost{cost}, err), err
	}
	return d, nil
}

// reserve decides as on a charge and sets the units aside if it is allowed.
func (s *session) reserve(r quota.Reserve, cost quota.Cost) (quota.Decision, error) {
	now := s.now()
	kept := keyed(r.Credential, r.Key, requestText("reserve", []quota.Cost{cost}, ""), now, r.Limits)
	if d, known, err := s.recall(kept); known || err != nil {
		return d, err
	}
	if err := r.CheckCost(); err != nil {
		return quota.Decision{}, err
	}
	b, err := s.bucket(r.Credential, cost.Bucket)
	if err != nil {
		return quota.Decision{}, err
	}
	n := moment(now, b)
	held, err := b.live(n)
	if err != nil {
		return quota.Decision{}, err
	}
	q := asks{n, []ask{{bucket: b, units: r.Units, limits: limitsOf(b.name, r.Limits), manual: r.Manual, held: held}}}
	d := q.decision(q.judge(), now, r.Observe)
	if !d.Allowed || s.broken != nil {
		return d, s.broken
	}
	if _, live, err := b.reservation(r.ID, n); live || err != nil {
		if err == nil {
			err = fmt.Errorf("%s is set aside already: %w", r.ID, quota.ErrKeyReused)
		}
		return quota.Decision{}, err
	}
	expires := n + r.TTL.Microseconds()
	d.Reservation, d.ExpiresAt = r.ID, stamp(expires)
	if err := b.setAside(r, n, expires); err != nil {
		return d, err
	}
	return d, s.remember(kept, d)
}

// setAside writes the reservation and forgets some that can never count again.
func (b *bucket) setAside(r quota.Reserve, n, expires int64) error {
	if err := b.row(); err != nil {
		return err
	}
	b.keep(r.Limits)
	b.newest = max(b.newest, n-1) // nothing is decided at an earlier time from now on
	if err := b.s.change("bucket_update", b.id, b.total, b.newest, b.retention); err != nil {
		return err
	}
	if err := b.s.change("reservation_trim", b.id, b.newest, trimReservations); err != nil {
		return err
	}
	return b.s.change("reservation_add", b.id, r.ID, r.Units, n, expires, r.Manual, r.Note)
}
