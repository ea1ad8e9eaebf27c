package sqliteledger

import (
	"database/sql"
	"errors"
	"fmt"

	"quotabudget/internal/quota"
)

// bucket is one bucket's row, as read in this transaction. It is the quota.Log of its entries.
type bucket struct {
	s          *session
	credential string
	name       string
	id         int64 // 0: no row yet
	total      int64
	newest     int64 // stamp
	oldest     sql.NullInt64
	suspended  int64 // until
	retention  int64 // µs
	held       int64 // units left in its reservations, expired ones included
	lapsed     bool  // some that have expired still hold units
	bases      map[int64]int64
}

// bucket reads the row of a bucket; one that was never used has none, and reading makes none.
func (s *session) bucket(credential, name string) (*bucket, error) {
	b := &bucket{s: s, credential: credential, name: name}
	var last, total sql.NullInt64
	_, err := s.find("bucket_find", []any{credential, name}, &b.id, &b.total, &b.newest, &b.suspended, &b.retention, &b.held,
		&last, &total, &b.oldest)
	if err != nil {
		return b, err
	}
	keep := max(b.retention, quota.Retention.Microseconds())
	switch {
	case b.total < 0 || b.total > quota.MaxTotal || b.newest > quota.MaxTotal || b.retention < 0 || b.retention > quota.Never:
		return b, b.damaged("its state cannot be read, with a total of %d", b.total)
	case total.Valid && total.Int64 != b.total:
		return b, b.damaged("the total is %d in its newest entry, and %d in its state", total.Int64, b.total)
	case total.Valid && last.Int64 > b.newest:
		return b, b.damaged("its newest entry is later than the newest time in its state")
	case !total.Valid && b.total > 0 && b.newest > s.now()-keep:
		return b, b.damaged("there are no entries, but the total in its state is %d", b.total)
	}
	return b, nil
}

// damaged says that the rows of the bucket cannot be what this program wrote. The session remembers
// it.
func (b *bucket) damaged(format string, args ...any) error {
	err := &quota.DamagedError{Credential: b.credential, Bucket: b.name, What: fmt.Sprintf(format, args...)}
	return b.s.note("", err)
}

// row makes sure that the bucket has one.
func (b *bucket) row() error {
	if b.id != 0 {
		return nil
	}
	b.s.wrote = true
	_, err := b.s.find("bucket_add", []any{b.credential, b.name}, &b.id)
	return err
}

// moment is the time at which the buckets are decided on: now, but after every entry that any of
// them ever had.
func moment(now int64, buckets ...*bucket) int64 {
	for _, b := range buckets {
		now = max(now, b.newest+1)
	}
	return now
}

// base is the running total just before the first entry after t. An error is kept by the session.
func (b *bucket) base(t int64) int64 {
	if b.id == 0 || t >= b.newest {
		return b.total
	}
	if base, known := b.bases[t]; known {
		return base
	}
	base := b.firstBase(t)
	if b.bases == nil {
		b.bases = make(map[int64]int64)
	}
	b.bases[t] = base
	return base
}

func (b *bucket) firstBase(t int64) int64 {
	var total, units int64
	var after, more sql.NullInt64
	found, err := b.s.find("entry_base", []any{b.id, t}, &total, &units, &after, &more)
	if !found || err != nil {
		return b.total
	}
	if !after.Valid {
		after.Int64 = b.total
	}
	if units < 1 || units > total || more.Int64 < 0 || after.Int64 > b.total || total > after.Int64-more.Int64 {
		_ = b.damaged("the totals of its entries do not rise by their units")
	}
	return total - units
}

// UsedAfter implements quota.Log.
func (b *bucket) UsedAfter(t int64) int64 { return b.total - b.base(t) }

// StampAt implements quota.Log.
func (b *bucket) StampAt(t, n int64) int64 {
	var at int64
	if found, err := b.s.find("entry_reaching", []any{b.id, b.base(t) + n}, &at); !found && err == nil {
		_ = b.damaged("the totals of its entries do not rise by their units")
	}
	return at
}

// live is what the bucket's reservations hold at the time n.
func (b *bucket) live(n int64) (int64, error) {
	if b.held == 0 {
		return 0, nil
	}
	var lapsed int64
	if _, err := b.s.find("reservation_lapsed", []any{b.id, n}, &lapsed); err != nil {
		return 0, err
	}
	b.lapsed = lapsed > 0
	live := b.held - lapsed
	if live < 0 || live > quota.MaxTotal {
		return 0, b.damaged("what its reservations hold cannot be read: %d units, %d of them expired",
			b.held, lapsed)
	}
	return live, nil
}

// errEnough ends the reading of rows.
var errEnough = errors.New("enough")

// holds are the live units as quota.Fits needs them: those that expire first, one by one until they
// make up need units, and the rest, of which it does not matter when they expire, in one.
func (b *bucket) holds(n, live, need int64) ([]quota.Hold, error) {
	var holds []quota.Hold
	var sum int64
	if need <= 0 || live == 0 {
		return []quota.Hold{{Units: live, ExpiresAt: quota.Never}}, nil
	}
	err := b.s.each("reservation_holds", []any{b.id, n}, func(row *sql.Rows) error {
		var h quota.Hold
		if err := row.Scan(&h.Units, &h.ExpiresAt); err != nil {
			return err
		}
		holds = append(holds, h)
		if sum += h.Units; sum >= need {
			return errEnough
		}
		return nil
	})
	if sum > live {
		err = b.damaged("its reservations hold %d units, and its state counts %d", sum, live)
	}
	return append(holds, quota.Hold{Units: live - sum, ExpiresAt: quota.Never}), err
}

// record writes an entry at n, newer than all others.
func (b *bucket) record(n, units int64, id, labels string) error {
	if err := b.row(); err != nil {
		return err
	}
	if b.total+units > quota.MaxTotal {
		return b.damaged("its running total of %d cannot grow by %d", b.total, units)
	}
	b.total, b.newest, b.bases = b.total+units, n, nil
	if err := b.s.change("entry_add", b.id, n, id, units, b.total, labels); err != nil {
		return err
	}
	if err := b.s.change("bucket_update", b.id, b.total, b.newest, b.retention); err != nil {
		return err
	}
	if !b.lapsed {
		return nil
	}
	return b.s.change("reservation_trim", b.id, b.newest, trimReservations)
}

// keep makes the retention long enough for the limits; it never gets shorter.
func (b *bucket) keep(limits []quota.Limit) {
	b.retention = max(b.retention, quota.RetentionFor(limits).Microseconds())
}

// reservation is one row, live at the time it was looked up for.
type reservation struct {
	id    string
	left  int64
	drawn int64
}

// reservation looks up an unexpired reservation.
func (b *bucket) reservation(id string, n int64) (r reservation, live bool, err error) {
	var units, expires int64
	r.id = id
	found, err := b.s.find("reservation_find", []any{b.id, id}, &units, &r.drawn, &expires)
	if err == nil && (r.drawn < 0 || r.drawn > units || units > quota.MaxUnits) {
		err = b.damaged("the reservation %s of %d units, %d of them drawn", id, units, r.drawn)
	}
	r.left = units - r.drawn
	return r, found && n < expires, err
}

func noReservation(id string) error { return fmt.Errorf("%s: %w", id, quota.ErrNoReservation) }

func short(r reservation, units int64) error {
	return fmt.Errorf("%s: %d units asked for, %d left: %w", r.id, units, r.left, quota.ErrReservationShort)
}

// limitsOf picks the limits of one bucket.
func limitsOf(bucket string, limits []quota.Limit) []quota.Limit {
	var own []quota.Limit
	for _, l := range limits {
		if l.Bucket == bucket {
			own = append(own, l)
		}
	}
	return own
}
