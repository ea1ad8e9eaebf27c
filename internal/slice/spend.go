package slice

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// Spend pays a charge from the slice, all or nothing. It returns once that is on the disk; a charge
// whose key has been paid for is not paid again. Errors: quota.ErrNoSlice where the ledger has
// never been reached; others when the slice is spent or has expired.
func (s *Slice) Spend(ctx context.Context, c quota.Charge) (left map[string]int64, err error) {
	if len(s.Units) == 0 {
		return nil, errNotLeased
	}
	s.mu.Lock()
	s.next = time.Time{} // once the ledger is back, the journal is posted at once
	s.mu.Unlock()
	now := s.now()
	err = s.inFile(ctx, func(tx *sql.Tx) (err error) {
		left, err = s.spend(ctx, tx, c, now)
		return err
	})
	return left, err
}

func (s *Slice) spend(ctx context.Context, tx *sql.Tx, c quota.Charge, now moment) (
	map[string]int64, error) {
	left := make(map[string]int64, len(c.Costs))
	if paid, err := s.paid(ctx, tx, c); paid || err != nil {
		return left, err
	}
	lease, err := s.usable(ctx, tx, now)
	if err != nil {
		return nil, err
	}
	for _, cost := range c.Costs {
		if err := s.checkOpen(ctx, tx, cost.Bucket, now); err != nil {
			return nil, err
		}
		if left[cost.Bucket], err = s.take(ctx, tx, lease, cost); err != nil {
			return nil, err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO lines (id, bucket, account, units, spent_at,
			labels, boot, up_at, lease, asked, key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			c.ID, cost.Bucket, s.account(), cost.Units, now.wall.UnixMicro(), c.Labels.Encode(),
			now.boot, now.up.Microseconds(), lease, askedOf(c), c.Key)
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}

// askedOf is the reservation that the ledger was asked for before, "" if it was a charge.
func askedOf(c quota.Charge) string {
	if id, _, err := quota.ParseReservation(c.Reservation); err == nil && id == c.ID {
		return c.Reservation
	}
	return ""
}

// paid reports whether a charge with the same key is in the journal.
func (s *Slice) paid(ctx context.Context, tx *sql.Tx, c quota.Charge) (bool, error) {
	if c.Key == "" {
		return false, nil
	}
	lines, err := scan(ctx, tx, func(rows *sql.Rows, l *quota.Cost) error {
		return rows.Scan(&l.Bucket, &l.Units)
	}, `SELECT bucket, units FROM lines WHERE account = ? AND key = ?`, s.account(), c.Key)
	if err != nil || len(lines) == 0 {
		return false, err
	}
	for _, cost := range c.Costs {
		same := func(l quota.Cost) bool { return l.Bucket == cost.Bucket && l.Units == cost.Units }
		if len(lines) != len(c.Costs) || !slices.ContainsFunc(lines, same) {
			return false, fmt.Errorf("%w: %q", quota.ErrKeyReused, c.Key)
		}
	}
	return true, nil
}

// usable is the lease to spend from.
func (s *Slice) usable(ctx context.Context, tx *sql.Tx, now moment) (string, error) {
	leases, err := s.leases(ctx, tx)
	if err != nil {
		return "", err
	}
	for _, l := range leases {
		if l.state != granted {
			continue
		}
		switch left, sure := l.left(now); {
		case !sure:
			return "", errClock
		case left < margin:
			return "", errExpired
		}
		return l.reservation, nil
	}
	return "", s.noLease(ctx, tx)
}

// noLease says why there is none. Where there once was one, nothing passes.
func (s *Slice) noLease(ctx context.Context, tx *sql.Tx) error {
	var ever int
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM turns WHERE account = ?`, s.account()).
		Scan(&ever)
	if err == nil && ever == 0 {
		return s.never()
	}
	return cmp.Or(err, errBetween)
}

// take takes a cost off a lease, and returns what is left of it. Of a lease that is larger than it
// would be by now, because a limit was lowered, no more is spent than it would be.
func (s *Slice) take(ctx context.Context, tx *sql.Tx, lease string, cost quota.Cost) (
	left int64, err error) {
	i := slices.IndexFunc(s.Units, func(u quota.Cost) bool { return u.Bucket == cost.Bucket })
	if i < 0 {
		return 0, errNotLeased
	}
	err = tx.QueryRowContext(ctx, `UPDATE parts SET left = left - ?1
		WHERE reservation = ?2 AND bucket = ?3 AND left >= ?1 AND units - left + ?1 <= ?4
		RETURNING min(left, left - units + ?4)`, cost.Units, lease, cost.Bucket,
		s.Units[i].Units).Scan(&left)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, errSpent
	}
	return left, err
}

// Cancel takes back what Spend paid for a charge whose call surely never left, unless the ledger
// has it already.
func (s *Slice) Cancel(ctx context.Context, id string) error {
	return s.inFile(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE parts SET left = left + lines.units FROM lines
			WHERE lines.id = ? AND lines.lease = parts.reservation AND lines.bucket = parts.bucket`,
			id)
		var done sql.Result
		if err == nil {
			done, err = tx.ExecContext(ctx, `DELETE FROM lines WHERE id = ?`, id)
		}
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return fmt.Errorf("%w: it has been recorded meanwhile", quota.ErrNoEntry)
	})
}

// Suspend lets nothing of a bucket pass until the given time, and tells the ledger so when it is
// back. Errors: quota.ErrNoSlice where nothing was ever leased.
func (s *Slice) Suspend(ctx context.Context, bucket string, until time.Time) error {
	return s.inFile(ctx, func(tx *sql.Tx) error {
		return s.note(ctx, tx, suspension{bucket, until.UnixMicro(), true})
	})
}

// suspension is until when a bucket is suspended.
type suspension struct {
	bucket string
	until  int64 // Unix µs; 0 for one that is not
	waits  bool  // the ledger does not know it yet
}

func (s *Slice) note(ctx context.Context, tx *sql.Tx, of suspension) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO suspensions (account, bucket, until, waits)
		VALUES (?1, ?2, ?3, ?4) ON CONFLICT (account, bucket) DO UPDATE SET until = ?3, waits = ?4`,
		s.account(), of.bucket, of.until, of.waits)
	return err
}

// checkOpen returns an error where the bucket is suspended.
func (s *Slice) checkOpen(ctx context.Context, tx *sql.Tx, bucket string, now moment) error {
	var until int64
	err := tx.QueryRowContext(ctx, `SELECT until FROM suspensions WHERE account = ? AND bucket = ?`,
		s.account(), bucket).Scan(&until)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err == nil && until > now.wall.UnixMicro():
		return fmt.Errorf("%s is suspended until %s: %w", bucket,
			time.UnixMicro(until).UTC().Format(time.RFC3339), errSuspended)
	}
	return err
}
