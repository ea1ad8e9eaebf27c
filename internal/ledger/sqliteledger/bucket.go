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
	suspended  int64 // until
	retention  int64 // µs
	bases      map[int64]int64
}

// bucket reads the row of a bucket; one that was never used has none, and reading makes none.
func (s *session) bucket(credential, name string) (*bucket, error) {
	b := &bucket{s: s, credential: credential, name: name}
	_, err := s.find("bucket_find", []any{credential, name}, &b.id, &b.total, &b.newest, &b.suspended, &b.retention)
	return b, err
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

// moment is the time at which the buckets are decided on: now, but after every entry that any of them ever had.
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
	base := b.total
	_, _ = b.s.find("entry_base", []any{b.id, t}, &base)
	if b.bases == nil {
		b.bases = make(map[int64]int64)
	}
	b.bases[t] = base
	return base
}

// UsedAfter implements quota.Log.
func (b *bucket) UsedAfter(t int64) int64 { return b.total - b.base(t) }

// StampAt implements quota.Log.
func (b *bucket) StampAt(t, n int64) int64 {
	var at int64
	_, _ = b.s.find("entry_reaching", []any{b.id, b.base(t) + n}, &at)
	return at
}

// holds are the units set aside in the bucket at the time n.
func (b *bucket) holds(n int64) ([]quota.Hold, error) {
	if b.id == 0 {
		return nil, nil
	}
	var holds []quota.Hold
	err := b.s.each("reservation_holds", []any{b.id, n}, func(row *sql.Rows) error {
		var h quota.Hold
		err := row.Scan(&h.Units, &h.ExpiresAt)
		holds = append(holds, h)
		return err
	})
	return holds, err
}

// record writes an entry at n, newer than all others.
func (b *bucket) record(n, units int64, id, labels string) error {
	if err := b.row(); err != nil {
		return err
	}
	b.total, b.newest, b.bases = b.total+units, n, nil
	if err := b.s.change("entry_add", b.id, n, id, units, b.total, labels); err != nil {
		return err
	}
	return b.s.change("bucket_update", b.id, b.total, b.newest, b.retention)
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
