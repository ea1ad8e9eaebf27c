package sqliteledger

import (
	"context"
	"fmt"

	"quotabudget/internal/quota"
)

// Reserve implements quota.Ledger.
func (l *Ledger) Reserve(ctx context.Context, r quota.Reserve) (quota.Decision, error) {
	name, _, _ := quota.ParseReservation(r.ID)
	costs := []quota.Cost{{Bucket: name, Units: r.Units}}
	if err := r.Check(); err != nil {
		return quota.Refused(costs, err)
	}
	return l.decide(ctx, costs, func(s *session) (quota.Decision, error) {
		return s.reserve(r, costs)
	})
}

// reserve decides as on a charge and sets the units aside if it is allowed.
func (s *session) reserve(r quota.Reserve, costs []quota.Cost) (quota.Decision, error) {
	now := s.now()
	kept := keyed(r.Credential, r.Key, requestText("reserve", costs, ""), now, r.Limits)
	if d, known, err := s.recall(kept); known {
		return d, err
	}
	if err := r.CheckCost(); err != nil {
		return quota.Decision{}, err
	}
	b := s.bucket(r.Credential, costs[0].Bucket)
	n := moment(now, b)
	a := ask{bucket: b, units: r.Units, limits: quota.LimitsOf(b.name, r.Limits), manual: r.Manual}
	a.held = b.live(n)
	d := asks{n, []ask{a}}.decision(now, r.Observe)
	if !d.Allowed {
		return d, nil
	}
	if _, err := b.reservation(r.ID, n, 0); err == nil {
		return quota.Decision{}, fmt.Errorf("%s already exists: %w", r.ID, quota.ErrKeyReused)
	}
	expires := n + r.TTL.Microseconds()
	d.Reservation, d.ExpiresAt = r.ID, stamp(expires)
	b.setAside(r, n, expires)
	s.remember(kept, d)
	return d, nil
}

// setAside writes the reservation and forgets some that can never count again.
func (b *bucket) setAside(r quota.Reserve, n, expires int64) {
	b.row()
	b.keep(r.Limits)
	b.newest = max(b.newest, n-1) // nothing is decided at an earlier time from now on
	b.s.change("bucket_update", b.id, b.total, b.newest, b.retention)
	b.s.change("reservation_trim", b.id, b.newest, trimReservations)
	b.s.change("reservation_add", b.id, r.ID, r.Units, n, expires, r.Manual, r.Note)
}
