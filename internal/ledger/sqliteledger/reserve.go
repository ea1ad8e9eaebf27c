package sqliteledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"quotabudget/internal/quota"
)

// forever is when a reservation expires that becomes an entry, for an earlier version of the
// program: it must not take it for one that holds nothing any more.
var forever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC).UnixMicro()

// Reserve implements quota.Ledger.
func (l *Ledger) Reserve(ctx context.Context, r quota.Reserve) (quota.Decision, error) {
	if err := r.Check(); err != nil {
		return quota.Refused(r.Costs, err)
	}
	return l.decide(ctx, r.Costs, func(s *session) (quota.Decision, error) { return s.reserve(r) })
}

// reserve decides as on a charge and sets the units aside if it is allowed.
func (s *session) reserve(r quota.Reserve) (quota.Decision, error) {
	now := s.now()
	kept := keyed(r.Credential, r.Key, requestText("reserve", r.Costs, ""), now, r.Limits)
	if d, known, err := s.recall(kept); known {
		return d, err
	}
	q := s.asks(r.Credential, r.Costs, quota.InMode(r.Limits, r.Observe), now)
	if err := r.CheckCost(); err != nil {
		return quota.Decision{}, err
	}
	for i := range q.list {
		q.list[i].manual, q.list[i].reserves = r.Manual, true
		q.list[i].tooLow = r.TooLow(r.Costs[i])
	}
	d := q.decision(now, r.Observe)
	if !d.Allowed {
		return d, nil
	}
	// it is in all of its buckets, or in none
	if _, err := q.list[0].reservation(r.ID, q.n, 0); err == nil {
		return quota.Decision{}, fmt.Errorf("%s already exists: %w", r.ID, quota.ErrKeyReused)
	}
	expires := q.n + r.TTL.Microseconds()
	d.Reservation, d.ExpiresAt = r.ID, stamp(expires)
	for i, a := range q.list {
		a.setAside(r, r.Costs[i], q.n, expires)
	}
	s.remember(kept, d)
	return d, nil
}

// setAside writes the reservation and forgets some that can never count again.
func (b *bucket) setAside(r quota.Reserve, c quota.Cost, n, expires int64) {
	b.row()
	b.keep(r.Limits)
	b.newest = max(b.newest, n-1) // nothing is decided at an earlier time from now on
	b.update()
	b.held, b.atMost = b.held+c.Units, b.atMost+max(c.Units, c.Most)
	b.stale = b.stale || b.ends.Valid && b.ends.Int64 <= n // an expired one may give way
	if !b.ends.Valid || expires < b.ends.Int64 {
		b.ends = sql.NullInt64{Int64: expires, Valid: true}
	}
	if b.s.kept.on {
		b.s.kept.made[madeName{b.id, r.ID}] = made{c.Units, max(c.Units, c.Most), expires}
	}
	var lapses any
	var labels string
	if r.LapseOf(c.Bucket) == quota.LapseCharge {
		lapses, expires, labels = expires, forever, r.Labels.Encode()
	} else { // those that lapse into entries are not trimmed
		b.s.change("reservation_trim", b.id, b.newest, trimReservations)
	}
	b.s.change("reservation_add", b.id, r.ID, c.Units, c.Most, n, expires, lapses, labels,
		r.Manual, r.Note)
}
