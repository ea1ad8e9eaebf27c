package sqliteledger

import (
	"context"
	"database/sql"
	"fmt"

	"quotabudget/internal/quota"
)

// maxRewritten is how many later entries are rewritten at most when one is taken out, or lowered.
const maxRewritten = 10_000

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
		b.takeOut(at, units[i])
		s.change("bucket_lower", b.id, units[i])
		if c.Draws(b.name) {
			b.giveBack(c.Reservation, units[i])
		}
	}
	if c.Key != "" {
		s.change("answer_forget", c.Credential, ofKey, c.Key)
	}
	return nil
}

// giveBack returns drawn units to a reservation, unless it has expired by the time of the next
// decision: then it may be deleted or an entry by now.
func (b *bucket) giveBack(reservation string, units int64) {
	if _, err := b.reservation(reservation, b.newest+1, 0); err == nil {
		b.s.change("reservation_draw", b.id, reservation, -units)
	}
}

// takeOut removes the entry at the time given, and so many units from the running totals after it.
func (b *bucket) takeOut(at, units int64) {
	b.s.change("entry_remove", b.id, at)
	b.s.change("entry_lower_after", b.id, at, units)
}

// cancellable finds the units of the entry id at the time given.
func (b *bucket) cancellable(id string, at int64) (units int64, err error) {
	if !b.s.find("entry_find", []any{b.id, at, id}, &units) {
		return 0, fmt.Errorf("%s in bucket %s at %s: %w", id, b.name, stamp(at), quota.ErrNoEntry)
	}
	if err := b.alterable(at, units, quota.ErrNoEntry); err != nil {
		return 0, fmt.Errorf("%s in bucket %s: %w", id, b.name, err)
	}
	return units, nil
}

// alterable makes sure that so many units can come off the entry at the time given; otherwise it is
// late.
func (b *bucket) alterable(at, units int64, late error) error {
	var later int64
	var least sql.NullInt64
	b.s.find("entry_count_after", []any{b.id, at, maxRewritten + 1}, &later, &least)
	if later > maxRewritten {
		return fmt.Errorf("more than %d entries came after it: %w", maxRewritten, late)
	}
	if units < 1 || later > 0 && least.Int64 < units {
		b.damaged(unsteady)
	}
	return nil
}
