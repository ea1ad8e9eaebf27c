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

// Reached is called after each answer of the ledger. From time to time it posts the journal and
// fills up the slice for the next outage. Errors are logged and retried.
func (s *Slice) Reached(ctx context.Context) {
	now := s.now()
	s.mu.Lock()
	s.reached = true
	due := !now.wall.Before(s.next) || s.next.Sub(now.wall) > retry // or the clock was set back
	if due {
		s.next = now.wall.Add(retry)
	}
	s.mu.Unlock()
	if !due || len(s.Units) == 0 {
		return
	}
	if err := s.update(ctx, now); err != nil && ctx.Err() == nil {
		s.Log.Warn("cannot bring the slice for times without the ledger up to date, retrying",
			"credential", s.Credential, "file", s.Path, "error", err)
	}
}

func (s *Slice) update(ctx context.Context, now moment) error {
	db, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	lines, leases, err := s.standing(ctx, db)
	if err != nil || len(lines) == 0 && len(leases) == 1 && s.lasts(leases[0], now) {
		return err
	}
	ours, err := s.turn(ctx, db, now.wall)
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

func (s *Slice) catchUp(ctx context.Context, db *sqlite.DB, now moment) error {
	lines, leases, err := s.standing(ctx, db)
	if err != nil {
		return err
	}
	if err := s.post(ctx, db, lines); err != nil {
		return fmt.Errorf("%d entries wait to be recorded: %w", len(lines), err)
	}
	if len(lines) > 0 {
		s.Log.Info("ledger is back: what was spent without it has been recorded", "credential",
			s.Credential, "entries", len(lines))
	}
	if err := s.suspend(ctx, db); err != nil {
		return err
	}
	return s.lease(ctx, db, leases, now)
}

// standing is the journal, oldest first, and the leases.
func (s *Slice) standing(ctx context.Context, db *sqlite.DB) (lines []line, leases []lease,
	err error) {
	err = db.View(ctx, func(tx *sql.Tx) error {
		lines, err = s.journal(ctx, tx)
		if err == nil {
			leases, err = s.leases(ctx, tx)
		}
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

// suspend tells the ledger which buckets were suspended meanwhile, and writes down which are, so
// that nothing of them passes in the next outage.
func (s *Slice) suspend(ctx context.Context, db *sqlite.DB) error {
	var known []suspension
	err := db.View(ctx, func(tx *sql.Tx) (err error) {
		known, err = scan(ctx, tx, func(rows *sql.Rows, of *suspension) error {
			return rows.Scan(&of.bucket, &of.until, &of.waits)
		}, `SELECT bucket, until, waits FROM suspensions WHERE account = ?`, s.account())
		return err
	})
	if err != nil {
		return err
	}
	for _, of := range known {
		until := time.UnixMicro(of.until)
		if of.waits && until.After(s.now().wall) {
			if err := s.Ledger.Suspend(ctx, quota.Suspension{Credential: s.Credential, Bucket: of.bucket, Until: until,
				By: quota.ByUpstream}); err != nil {
				return err
			}
		}
	}
	usage, err := s.Ledger.Usage(ctx, s.Credential, s.Limits)
	if err != nil {
		return err
	}
	return db.Update(ctx, func(tx *sql.Tx) error {
		for _, b := range usage.Buckets {
			of := suspension{bucket: b.Bucket}
			if !b.SuspendedUntil.IsZero() {
				of.until = b.SuspendedUntil.UnixMicro()
			}
			if err := s.note(ctx, tx, of); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Slice) exec(ctx context.Context, db *sqlite.DB, statement string, args ...any) error {
	return db.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
}
