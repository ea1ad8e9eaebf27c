package slice

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// Reached is told that the ledger has just answered. Once in a while it posts the journal, and sees
// to it that there is a whole slice for the next outage. What goes wrong is logged and tried again:
// the caller has its answer already.
func (s *Slice) Reached(ctx context.Context) {
	now := s.now()
	s.mu.Lock()
	due := !now.Before(s.next)
	if due {
		s.next = now.Add(retry)
	}
	s.mu.Unlock()
	if !due {
		return
	}
	if err := s.update(ctx, now); err != nil && ctx.Err() == nil {
		s.Log.Warn("cannot lease units for times without the ledger, retrying", "credential",
			s.Credential, "error", err)
	}
}

func (s *Slice) update(ctx context.Context, now time.Time) error {
	db, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	lines, leases, err := s.standing(ctx, db)
	if err != nil || len(lines) == 0 && len(leases) == 1 && leases[0].lasts(now) {
		return err
	}
	ours, err := s.turn(ctx, db, now)
	if err != nil || !ours {
		return err
	}
	err = s.catchUp(ctx, db, now)
	return errors.Join(err, s.exec(ctx, db, `UPDATE turns SET until = 0 WHERE account = ?`,
		s.account()))
}

// turn reports whether it is for this process to do what is to be done, for half a minute.
func (s *Slice) turn(ctx context.Context, db *sqlite.DB, now time.Time) (ours bool, err error) {
	err = db.Update(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `INSERT INTO turns (account, until) VALUES (?1, ?2)
			ON CONFLICT (account) DO UPDATE SET until = ?2 WHERE until <= ?3 OR until > ?2`,
			s.account(), now.Add(retry/2).UnixMicro(), now.UnixMicro())
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		ours = n > 0
		return err
	})
	return ours, err
}

func (s *Slice) catchUp(ctx context.Context, db *sqlite.DB, now time.Time) error {
	lines, leases, err := s.standing(ctx, db)
	if err != nil {
		return err
	}
	if err := s.post(ctx, db, lines); err != nil {
		return err
	}
	if len(lines) > 0 {
		s.Log.Info("ledger is back: what was spent without it has been recorded", "credential",
			s.Credential, "entries", len(lines))
	}
	return s.lease(ctx, db, leases, now)
}

// standing is the journal, oldest first, and the leases.
func (s *Slice) standing(ctx context.Context, db *sqlite.DB) (lines []line, leases []lease,
	err error) {
	err = db.View(ctx, func(tx *sql.Tx) error {
		lines, err = scan(ctx, tx, func(rows *sql.Rows, l *line) error {
			return rows.Scan(&l.id, &l.bucket, &l.units, &l.at, &l.labels)
		}, `SELECT id, bucket, units, spent_at, labels FROM lines WHERE account = ?
			ORDER BY spent_at, id`, s.account())
		if err != nil {
			return err
		}
		leases, err = scan(ctx, tx, func(rows *sql.Rows, l *lease) error {
			return rows.Scan(&l.reservation, &l.expires, &l.whole)
		}, `SELECT reservation, expires_at, usable AND NOT EXISTS (SELECT 1 FROM parts
			WHERE parts.reservation = leases.reservation AND left < units)
			FROM leases WHERE account = ? ORDER BY expires_at DESC`, s.account())
		return err
	})
	return lines, leases, err
}

func scan[T any](ctx context.Context, tx *sql.Tx, into func(*sql.Rows, *T) error, query string,
	args ...any) (list []T, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one T
		if err := into(rows, &one); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, rows.Err()
}

type line struct {
	id, bucket, labels string
	units, at          int64
}

// post writes the journal to the ledger, each line once, however often it is tried: the ledger
// knows it by its key.
func (s *Slice) post(ctx context.Context, db *sqlite.DB, lines []line) error {
	for _, l := range lines {
		if err := s.postLine(ctx, l); err != nil {
			return err
		}
		err := s.exec(ctx, db, `DELETE FROM lines WHERE id = ? AND bucket = ?`, l.id, l.bucket)
		if err != nil {
			return err
		}
	}
	return nil
}

// postLine adds an entry at the time at which the units were spent. Where too much came after that
// the entry is of now, which counts it for longer.
func (s *Slice) postLine(ctx context.Context, l line) error {
	labels, err := quota.ParseLabels(l.labels)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	a := quota.Adjust{
		Credential: s.Credential, ID: l.id, Key: "slice-" + l.id + "-" + l.bucket, Bucket: l.bucket,
		Units: l.units, Until: time.UnixMicro(l.at), Limits: quota.LimitsOf(l.bucket, s.Limits),
		Labels: labels.With(quota.Labels{quota.LabelSource: "journal"}),
	}
	if _, err = s.Ledger.Adjust(ctx, a); errors.Is(err, quota.ErrNoEntry) {
		a.Until = time.Time{}
		_, err = s.Ledger.Adjust(ctx, a)
	}
	return err
}

// lease is what is known of one.
type lease struct {
	reservation string
	expires     int64 // Unix µs
	whole       bool  // usable, and nothing of it is spent
}

// lasts reports whether the lease needs no extension yet.
func (l lease) lasts(now time.Time) bool {
	return l.whole && time.UnixMicro(l.expires).Sub(now) > ttl-renew
}

// lease makes sure that there is one whole lease that lasts for long enough. Those that are not
// whole, or were not granted or given back to the end, are given back.
func (s *Slice) lease(ctx context.Context, db *sqlite.DB, all []lease, now time.Time) error {
	kept := false
	for _, l := range all {
		if !kept && l.lasts(now) {
			kept = true
			continue
		}
		if !kept && l.whole && now.Add(margin).Before(time.UnixMicro(l.expires)) {
			err := s.extend(ctx, db, l)
			if kept = err == nil; kept {
				continue
			}
			if !errors.Is(err, quota.ErrNoReservation) {
				return err
			}
		}
		if err := s.giveBack(ctx, db, l); err != nil {
			return err
		}
	}
	if kept {
		return nil
	}
	return s.grant(ctx, db)
}

func (s *Slice) extend(ctx context.Context, db *sqlite.DB, l lease) error {
	began := s.now()
	_, err := s.Ledger.Extend(ctx, quota.Extend{Credential: s.Credential,
		Reservation: l.reservation, TTL: ttl})
	if err != nil {
		return err
	}
	return s.exec(ctx, db, `UPDATE leases SET expires_at = ? WHERE reservation = ?`,
		began.Add(ttl).UnixMicro(), l.reservation)
}

// giveBack ends a lease: first here, unless something was spent of it since the journal was posted,
// then in the ledger. One that has lapsed there was booked as used, which is taken off.
func (s *Slice) giveBack(ctx context.Context, db *sqlite.DB, l lease) error {
	err := db.Update(ctx, func(tx *sql.Tx) error {
		var journal int
		err := tx.QueryRowContext(ctx, `SELECT count(*) FROM lines WHERE account = ?`,
			s.account()).Scan(&journal)
		if err != nil {
			return err
		}
		if journal > 0 {
			return errSpentMeanwhile
		}
		_, err = tx.ExecContext(ctx, `UPDATE leases SET usable = 0 WHERE reservation = ?`,
			l.reservation)
		return err
	})
	if err != nil {
		return err
	}
	_, buckets, err := quota.ParseReservation(l.reservation)
	if err != nil {
		return err
	}
	settle := quota.Settle{Credential: s.Credential, Reservation: l.reservation,
		ID: quota.NewID(s.now()), Limits: s.Limits}
	for _, b := range buckets {
		settle.Costs = append(settle.Costs, quota.Cost{Bucket: b})
	}
	_, err = s.Ledger.Settle(ctx, settle)
	if err != nil && !errors.Is(err, quota.ErrNoReservation) &&
		!errors.Is(err, quota.ErrSettledLate) && !errors.Is(err, quota.ErrKeyReused) {
		return err
	}
	return s.exec(ctx, db, `DELETE FROM leases WHERE reservation = ?`, l.reservation)
}

var errSpentMeanwhile = errors.New("units were spent while the journal was posted")

// grant leases a whole slice. It is written here before the ledger is asked, so that a lease whose
// answer is lost is given back the next time.
func (s *Slice) grant(ctx context.Context, db *sqlite.DB) error {
	began := s.now()
	buckets := make([]string, len(s.Units))
	for i, u := range s.Units {
		buckets[i] = u.Bucket
	}
	id := quota.ReservationID(quota.NewID(began), buckets...)
	err := db.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO leases (reservation, account, expires_at, usable)
			VALUES (?, ?, ?, 0)`, id, s.account(), began.Add(ttl).UnixMicro())
		for _, u := range s.Units {
			if err == nil {
				_, err = tx.ExecContext(ctx, `INSERT INTO parts (reservation, bucket, units, left)
					VALUES (?1, ?2, ?3, ?3)`, id, u.Bucket, u.Units)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	d, err := s.Ledger.Reserve(ctx, quota.Reserve{Credential: s.Credential, ID: id, Costs: s.Units,
		Limits: s.Limits, TTL: ttl, Lapse: quota.LapseCharge, Note: s.Note,
		Labels: quota.Labels{quota.LabelSource: "slice"}})
	switch {
	case err != nil:
		return err
	case !d.Allowed:
		s.Log.Debug("no units are left to lease", "credential", s.Credential, "limit", d.Limit)
		return s.exec(ctx, db, `DELETE FROM leases WHERE reservation = ?`, id)
	}
	return s.exec(ctx, db, `UPDATE leases SET usable = 1 WHERE reservation = ?`, id)
}

func (s *Slice) exec(ctx context.Context, db *sqlite.DB, statement string, args ...any) error {
	return db.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
}
