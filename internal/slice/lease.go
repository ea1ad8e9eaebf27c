package slice

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// The states of a lease.
const (
	asked    = iota // of the ledger, whose answer is not known
	granted         // it may be spent
	returned        // it is being given back
)

// lease is what is known of one.
type lease struct {
	reservation string
	state       int
	expires     time.Time // by this host's clock
	at          moment    // when it was granted or extended
	spent       bool      // some of it
	units       map[string]int64
}

// leases are those of the account, the one that lasts longest first.
func (s *Slice) leases(ctx context.Context, tx *sql.Tx) ([]lease, error) {
	all, err := scan(ctx, tx, func(rows *sql.Rows, l *lease) error {
		var expires, at, up int64
		err := rows.Scan(&l.reservation, &l.state, &expires, &at, &l.at.boot, &up)
		l.expires, l.at.wall = time.UnixMicro(expires), time.UnixMicro(at)
		l.at.up, l.units = time.Duration(up)*time.Microsecond, map[string]int64{}
		return err
	}, `SELECT reservation, usable, expires_at, leased_at, boot, up_at FROM leases
		WHERE account = ? ORDER BY expires_at DESC`, s.account())
	for i := range all {
		_, err2 := scan(ctx, tx, func(rows *sql.Rows, c *quota.Cost) error {
			var left int64
			err := rows.Scan(&c.Bucket, &c.Units, &left)
			all[i].units[c.Bucket] = c.Units
			all[i].spent = all[i].spent || left < c.Units
			return err
		}, `SELECT bucket, units, left FROM parts WHERE reservation = ?`, all[i].reservation)
		err = errors.Join(err, err2)
	}
	return all, err
}

// left returns how long a lease may still be spent, by the clock that shows less. It returns false
// if the host was restarted with a clock that is behind.
func (l lease) left(now moment) (time.Duration, bool) {
	gone, sure := now.since(l.at)
	return min(ttl-gone, l.expires.Sub(now.wall)), sure
}

// lasts reports whether nothing is to be done about a lease yet.
func (s *Slice) lasts(l lease, now moment) bool {
	left, sure := l.left(now)
	return s.whole(l) && sure && left > ttl-renew
}

// whole reports whether a lease is as large as it should be, and nothing of it was spent.
func (s *Slice) whole(l lease) bool {
	if l.state != granted || l.spent || len(l.units) != len(s.Units) {
		return false
	}
	for _, u := range s.Units {
		if l.units[u.Bucket] != u.Units {
			return false
		}
	}
	return true
}

// lease makes sure that there is one whole lease that lasts for long enough. Those that are not
// whole, or were not granted or given back to the end, are given back.
func (s *Slice) lease(ctx context.Context, db *sqlite.DB, all []lease, now moment) error {
	kept := false
	for _, l := range all {
		if !kept && s.lasts(l, now) {
			kept = true
			continue
		}
		if !kept && s.whole(l) {
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
	return s.exec(ctx, db, `UPDATE leases SET expires_at = ?, leased_at = ?, boot = ?, up_at = ?
		WHERE reservation = ?`, began.wall.Add(ttl).UnixMicro(), began.wall.UnixMicro(), began.boot,
		began.up.Microseconds(), l.reservation)
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
		_, err = tx.ExecContext(ctx, `UPDATE leases SET usable = ? WHERE reservation = ?`,
			returned, l.reservation)
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
		ID: quota.NewID(time.Now()), Limits: s.Limits}
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
	l := lease{reservation: quota.ReservationID(quota.NewID(time.Now()), buckets...)}
	if err := s.ask(ctx, db, l, began); err != nil {
		return err
	}
	d, err := s.Ledger.Reserve(ctx, quota.Reserve{Credential: s.Credential, ID: l.reservation,
		Costs: s.Units, Limits: s.Limits, TTL: ttl, Lapse: quota.LapseCharge, Note: s.Note,
		Labels: quota.Labels{quota.LabelSource: "slice"}})
	switch {
	case err != nil:
		return err
	case !d.Allowed:
		s.Log.Debug("no units are left to lease", "credential", s.Credential, "limit", d.Limit)
		return s.exec(ctx, db, `DELETE FROM leases WHERE reservation = ?`, l.reservation)
	}
	return s.confirm(ctx, db, l)
}

// confirm lets a lease be spent that the ledger has granted. If that took so long that another
// process has given it back, maybe before it was granted, it is given back for good.
func (s *Slice) confirm(ctx context.Context, db *sqlite.DB, l lease) error {
	var ours int64
	err := db.Update(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `UPDATE leases SET usable = ? WHERE reservation = ?
			AND usable = ?`, granted, l.reservation, asked)
		if err != nil {
			return err
		}
		ours, err = done.RowsAffected()
		return err
	})
	if err != nil || ours > 0 {
		return err
	}
	_, err = s.Ledger.Release(ctx, s.Credential, l.reservation)
	if errors.Is(err, quota.ErrNoReservation) {
		return nil
	}
	return err
}

// ask writes down that a lease will be asked for.
func (s *Slice) ask(ctx context.Context, db *sqlite.DB, l lease, now moment) error {
	return db.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO leases (reservation, account, usable, expires_at,
			leased_at, boot, up_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			l.reservation, s.account(), asked,
			now.wall.Add(ttl).UnixMicro(), now.wall.UnixMicro(), now.boot, now.up.Microseconds())
		for _, u := range s.Units {
			if err == nil {
				_, err = tx.ExecContext(ctx, `INSERT INTO parts (reservation, bucket, units, left)
					VALUES (?1, ?2, ?3, ?3)`, l.reservation, u.Bucket, u.Units)
			}
		}
		return err
	})
}
