package sqliteledger

import (
	"context"
	"database/sql"
	"fmt"

	"quotabudget/internal/quota"
)

// maxRewritten is how many later entries Cancel rewrites at most.
const maxRewritten = 10_000

// Commit implements quota.Ledger.
func (l *Ledger) Commit(ctx context.Context, c quota.Commit) (quota.Decision, error) {
	if err := c.Check(); err != nil {
		return quota.Decision{}, err
	}
	return l.decide(ctx, nil, func(s *session) (quota.Decision, error) { return s.commit(c) })
}

func (s *session) commit(c quota.Commit) (d quota.Decision, err error) {
	now := s.now()
	b, n, err := s.bucketOf(c.Credential, c.Reservation)
	if err != nil {
		return d, err
	}
	text := fmt.Sprintf("commit of %d", c.Units)
	if c.Units == quota.AllUnits {
		text = "commit of all that is left"
	}
	until := now + max(b.retention, quota.RetentionFor(c.Limits).Microseconds())
	kept := receipt{c.Credential, ofCommit, c.Reservation, text, now, until}
	if d, known, err := s.recall(kept); known {
		return d, err
	}
	left, err := b.reservation(c.Reservation, n, c.Units)
	if err != nil {
		return d, err
	}
	units := c.Units
	if units == quota.AllUnits {
		units = left
	}
	d = b.settle(c, n, units, left)
	s.remember(kept, d)
	return d, nil
}

// settle turns the reservation, of which so many units are left, into an entry of some of them. No
// limit is asked: the units were set aside.
func (b *bucket) settle(c quota.Commit, n, units, left int64) quota.Decision {
	d := quota.Decision{
		Allowed:   true,
		At:        stamp(n),
		Units:     map[string]int64{b.name: units},
		Remaining: map[string]int64{},
	}
	a := ask{bucket: b, limits: quota.LimitsOf(b.name, c.Limits), held: b.live(n) - left}
	if len(a.limits) > 0 {
		d.Remaining[b.name] = max(0, a.remaining(n)-units)
	}
	b.s.change("reservation_remove", b.id, c.Reservation)
	if units > 0 {
		d.Entry = c.ID
		b.keep(c.Limits)
		b.record(n, units, c.ID, c.Labels.Encode())
	}
	return d
}

// Release implements quota.Ledger.
func (l *Ledger) Release(ctx context.Context, credential, id string) (left int64, err error) {
	err = l.update(ctx, func(s *session) error {
		b, n, err := s.bucketOf(credential, id)
		if err == nil {
			left, err = b.reservation(id, n, 0)
		}
		if err == nil {
			s.change("reservation_remove", b.id, id)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return left, nil
}

// bucketOf reads the bucket that a reservation names, and the time to decide at.
func (s *session) bucketOf(credential, reservation string) (*bucket, int64, error) {
	name, _, err := quota.ParseReservation(reservation)
	if err != nil {
		return nil, 0, err
	}
	b := s.bucket(credential, name)
	return b, moment(s.now(), b), nil
}

// Cancel implements quota.Ledger.
func (l *Ledger) Cancel(ctx context.Context, c quota.Charge, d quota.Decision) error {
	return l.update(ctx, func(s *session) error { return s.cancel(c, d.At.UnixMicro()) })
}

// cancel looks for the entry in every bucket, then takes them all out.
func (s *session) cancel(c quota.Charge, at int64) error {
	buckets, units := make([]*bucket, len(c.Costs)), make([]int64, len(c.Costs))
	for i, cost := range c.Costs {
		var err error
		buckets[i] = s.bucket(c.Credential, cost.Bucket)
		if units[i], err = buckets[i].cancellable(c.ID, at); err != nil {
			return err
		}
	}
	for i, b := range buckets {
		s.change("entry_remove", b.id, at)
		s.change("entry_lower_after", b.id, at, units[i])
		s.change("bucket_lower", b.id, units[i])
		if c.Draws(b.name) {
			s.change("reservation_draw", b.id, c.Reservation, -units[i])
		}
	}
	if c.Key != "" {
		s.change("answer_forget", c.Credential, ofKey, c.Key)
	}
	return nil
}

// cancellable finds the units of the entry id at the time given.
func (b *bucket) cancellable(id string, at int64) (units int64, err error) {
	if !b.s.find("entry_find", []any{b.id, at, id}, &units) {
		return 0, fmt.Errorf("%s in bucket %s at %s: %w", id, b.name, stamp(at), quota.ErrNoEntry)
	}
	var later int64
	var least sql.NullInt64
	b.s.find("entry_count_after", []any{b.id, at, maxRewritten + 1}, &later, &least)
	if later > maxRewritten {
		return 0, fmt.Errorf("%s in bucket %s: more than %d entries came after it: %w",
			id, b.name, maxRewritten, quota.ErrNoEntry)
	}
	if units < 1 || later > 0 && least.Int64 < units {
		b.damaged(unsteady)
	}
	return units, nil
}
