package sqliteledger

import (
	"database/sql"
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

// unsteady is said of entries whose totals contradict one another.
const unsteady = "the totals of its entries do not rise by their units"

// bucket reads the row of a bucket; one that was never used has none, and reading makes none.
func (s *session) bucket(credential, name string) *bucket {
	b := &bucket{s: s, credential: credential, name: name}
	var last, total sql.NullInt64
	s.find("bucket_find", []any{credential, name}, &b.id, &b.total, &b.newest, &b.suspended,
		&b.retention, &b.held, &last, &total, &b.oldest)
	keep := max(b.retention, quota.Retention.Microseconds())
	switch {
	case b.total < 0 || b.total > quota.MaxTotal || b.newest > quota.MaxTotal ||
		b.retention < 0 || b.retention > quota.Never:
		b.damaged("its state cannot be read, with a total of %d", b.total)
	case total.Valid && total.Int64 != b.total:
		b.damaged("the total is %d in its newest entry, and %d in its state", total.Int64, b.total)
	case total.Valid && last.Int64 > b.newest:
		b.damaged("its newest entry is later than the newest time in its state")
	case !total.Valid && b.total > 0 && b.newest > s.now()-keep:
		b.damaged("there are no entries, but the total in its state is %d", b.total)
	}
	return b
}

// damaged tells the session that the rows of the bucket cannot be what this program wrote.
func (b *bucket) damaged(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	b.s.fail("", &quota.DamagedError{Credential: b.credential, Bucket: b.name, What: what})
}

// row makes sure that the bucket has one.
func (b *bucket) row() {
	if b.id == 0 {
		b.s.wrote = true
		b.s.find("bucket_add", []any{b.credential, b.name}, &b.id)
	}
}

// moment is the time at which the buckets are decided on: now, but after every entry that any of
// them ever had.
func moment(now int64, buckets ...*bucket) int64 {
	for _, b := range buckets {
		now = max(now, b.newest+1)
	}
	return now
}

// base is the running total just before the first entry after t.
func (b *bucket) base(t int64) int64 {
	if b.id == 0 || t >= b.newest {
		return b.total
	}
	base, known := b.bases[t]
	if !known {
		base = b.firstBase(t)
		if b.bases == nil {
			b.bases = make(map[int64]int64)
		}
		b.bases[t] = base
	}
	return base
}

func (b *bucket) firstBase(t int64) int64 {
	var total, units int64
	var after, more sql.NullInt64
	if !b.s.find("entry_base", []any{b.id, t}, &total, &units, &after, &more) {
		return b.total
	}
	if !after.Valid {
		after.Int64 = b.total
	}
	if units < 1 || units > total || more.Int64 < 0 || after.Int64 > b.total ||
		total > after.Int64-more.Int64 {
		b.damaged(unsteady)
	}
	return total - units
}

// UsedAfter implements quota.Log.
func (b *bucket) UsedAfter(t int64) int64 { return b.total - b.base(t) }

// StampAt implements quota.Log.
func (b *bucket) StampAt(t, n int64) (at int64) {
	if !b.s.find("entry_reaching", []any{b.id, b.base(t) + n}, &at) {
		b.damaged(unsteady)
	}
	return at
}

// live is what the bucket's reservations hold at the time n.
func (b *bucket) live(n int64) int64 {
	if b.held == 0 {
		return 0
	}
	var lapsed int64
	b.s.find("reservation_lapsed", []any{b.id, n}, &lapsed)
	b.lapsed = lapsed > 0
	live := b.held - lapsed
	if live < 0 || live > quota.MaxTotal {
		b.damaged("what its reservations hold cannot be read: %d units, %d of them expired",
			b.held, lapsed)
	}
	return live
}

// holds are the live units as quota.Fits needs them: those that expire first, one by one until they
// make up need units, and the rest, of which it does not matter when they expire, in one.
func (b *bucket) holds(n, live, need int64) (holds []quota.Hold) {
	var sum int64
	if need > 0 && live > 0 {
		b.s.each("reservation_holds", []any{b.id, n}, func(row *sql.Rows) error {
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
	}
	if sum > live {
		b.damaged("its reservations hold %d units, and its state counts %d", sum, live)
	}
	return append(holds, quota.Hold{Units: live - sum, ExpiresAt: quota.Never})
}

// record writes an entry at n, newer than all others.
func (b *bucket) record(n, units int64, id, labels string) {
	b.row()
	if b.total+units > quota.MaxTotal {
		b.damaged("its running total of %d cannot grow by %d", b.total, units)
	}
	b.total, b.newest, b.bases = b.total+units, n, nil
	b.s.change("entry_add", b.id, n, id, units, b.total, labels)
	b.s.change("bucket_update", b.id, b.total, b.newest, b.retention)
	if b.lapsed {
		b.s.change("reservation_trim", b.id, b.newest, trimReservations)
	}
}

// trim forgets the oldest entries, a bounded number of them, once a thirty-second part of their
// time has piled up.
func (b *bucket) trim(n int64) {
	if b.oldest.Valid && b.oldest.Int64 <= n-b.retention-b.retention/32 {
		b.s.change("entry_trim", b.id, n-b.retention, trimEntries)
	}
}

// keep makes the retention long enough for the limits; it never gets shorter.
func (b *bucket) keep(limits []quota.Limit) {
	b.retention = max(b.retention, quota.RetentionFor(limits).Microseconds())
}

// reservation looks up what is left of a reservation, and of how many units it was, when it has not
// expired at n. Errors: ErrNoReservation, and ErrReservationShort when fewer than units are left.
func (b *bucket) reservation(id string, n, units int64) (left int64, err error) {
	var reserved, drawn, expires int64
	found := b.s.find("reservation_find", []any{b.id, id}, &reserved, &drawn, &expires)
	if drawn < 0 || drawn > reserved || reserved > quota.MaxUnits {
		b.damaged("the reservation %s of %d units, %d of them drawn", id, reserved, drawn)
	}
	left = reserved - drawn
	switch {
	case !found || n >= expires:
		return 0, fmt.Errorf("%s: %w", id, quota.ErrNoReservation)
	case units > left:
		return left, fmt.Errorf("%s: %d units asked for, %d left: %w", id, units, left,
			quota.ErrReservationShort)
	}
	return left, nil
}
