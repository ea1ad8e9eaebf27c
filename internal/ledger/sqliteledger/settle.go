package sqliteledger

import (
	"context"
	"database/sql"
	"fmt"

	"quotabudget/internal/quota"
)

// farBack is how many later entries Cancel rewrites at most.
const farBack = 10_000

// Commit implements quota.Ledger.
func (l *Ledger) Commit(ctx context.Context, c quota.Commit) (quota.Decision, error) {
	if err := c.Check(); err != nil {
		return quota.Decision{}, err
	}
	return l.decide(ctx, func(s *session) (quota.Decision, error) { return s.commit(c) })
}

// commitText is requestText of a commit.
func commitText(units int64) string {
	if units == quota.AllUnits {
		return "commit of all that is left"
	}
	return fmt.Sprintf("commit of %d", units)
}

func (s *session) commit(c quota.Commit) (quota.Decision, error) {
	now := s.now()
	b, n, err := s.bucketOf(c.Credential, c.Reservation, now)
	if err != nil {
		return quota.Decision{}, err
	}
	kept := receipt{c.Credential, ofCommit, c.Reservation, commitText(c.Units), now,
		now + max(b.retention, quota.RetentionFor(c.Limits).Microseconds())}
	if d, known, err := s.recall(kept); known || err != nil {
		return d, err
	}
	r, live, err := b.reservation(c.Reservation, n)
	switch {
	case err != nil:
		return quota.Decision{}, err
	case !live:
		return quota.Decision{}, noReservation(c.Reservation)
	}
	units := c.Units
	if units == quota.AllUnits {
		units = r.left
	}
	if units > r.left {
		return quota.Decision{}, short(r, units)
	}
	d, err := b.settle(c, r, n, units)
	if err != nil {
		return d, err
	}
	return d, s.remember(kept, d)
}

// settle turns the reservation into an entry of so many units. No limit is asked: the units were
// set aside.
func (b *bucket) settle(c quota.Commit, r reservation, n, units int64) (quota.Decision, error) {
	d := quota.Decision{
		Allowed:   true,
		At:        stamp(n),
		Units:     map[string]int64{b.name: units},
		Remaining: map[string]int64{},
	}
	held, err := b.live(n)
	if err != nil {
		return d, err
	}
	if err := b.s.change("reservation_remove", b.id, r.id); err != nil {
		return d, err
	}
	if limits := limitsOf(b.name, c.Limits); len(limits) > 0 {
		a := ask{bucket: b, limits: limits, held: held - r.left}
		d.Remaining[b.name] = max(0, a.remaining(n)-units)
	}
	if units == 0 {
		return d, nil
	}
	d.Entry = c.ID
	b.keep(c.Limits)
	return d, b.record(n, units, c.ID, c.Labels.Encode())
}

// Release implements quota.Ledger.
func (l *Ledger) Release(ctx context.Context, credential, id string) (int64, error) {
	var left int64
	err := l.update(ctx, func(s *session) error {
		b, n, err := s.bucketOf(credential, id, s.now())
		if err != nil {
			return err
		}
		r, live, err := b.reservation(id, n)
		switch {
		case err != nil:
			return err
		case !live:
			return noReservation(id)
		}
		left = r.left
		return s.change("reservation_remove", b.id, id)
	})
	if err != nil {
		return 0, err
	}
	return left, nil
}

// bucketOf reads the bucket that a reservation names, and the time to decide at.
func (s *session) bucketOf(credential, reservation string, now int64) (*bucket, int64, error) {
	name, _, err := quota.ParseReservation(reservation)
	if err != nil {
		return nil, 0, err
	}
	b, err := s.bucket(credential, name)
	if err != nil {
		return nil, 0, err
	}
	return b, moment(now, b), nil
}

// Cancel implements quota.Ledger.
func (l *Ledger) Cancel(ctx context.Context, c quota.Charge, d quota.Decision) error {
	return l.update(ctx, func(s *session) error { return s.cancel(c, d.At.UnixMicro()) })
}

// cancel looks for the entry in every bucket, then takes them all out.
func (s *session) cancel(c quota.Charge, at int64) error {
	type entry struct {
		*bucket
		units int64
	}
	var entries []entry
	for _, cost := range c.Costs {
		b, err := s.bucket(c.Credential, cost.Bucket)
		if err != nil {
			return err
		}
		units, err := b.cancellable(c.ID, at)
		if err != nil {
			return err
		}
		entries = append(entries, entry{b, units})
	}
	for _, e := range entries {
		if err := e.takeOut(at, e.units); err != nil {
			return err
		}
		if !draws(c, e.name) {
			continue
		}
		if err := s.change("reservation_draw", e.id, c.Reservation, -e.units); err != nil {
			return err
		}
	}
	if c.Key == "" {
		return nil
	}
	return s.change("answer_forget", c.Credential, ofKey, c.Key)
}

// cancellable finds the units of the entry id at the time given.
func (b *bucket) cancellable(id string, at int64) (units int64, err error) {
	found, err := b.s.find("entry_find", []any{b.id, at, id}, &units)
	if err != nil {
		return units, err
	}
	if !found {
		return units, fmt.Errorf("%s in bucket %s at %s: %w", id, b.name, stamp(at), quota.ErrNoEntry)
	}
	var later int64
	var least sql.NullInt64
	if _, err := b.s.find("entry_count_after", []any{b.id, at, farBack + 1}, &later, &least); err != nil {
		return units, err
	}
	if later > farBack {
		return units, fmt.Errorf("%s in bucket %s: too far back, more than %d entries follow: %w", id, b.name, farBack, quota.ErrNoEntry)
	}
	if units < 1 || later > 0 && least.Int64 < units {
		return units, b.damaged("the totals of its entries do not rise by their units")
	}
	return units, nil
}

func (b *bucket) takeOut(at, units int64) error {
	if err := b.s.change("entry_remove", b.id, at); err != nil {
		return err
	}
	if err := b.s.change("entry_lower_after", b.id, at, units); err != nil {
		return err
	}
	return b.s.change("bucket_lower", b.id, units)
}
