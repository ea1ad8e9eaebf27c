package sqliteledger

import (
	"errors"

	"quotabudget/internal/quota"
)

// look reads the buckets and finds the time to decide at: now, but after every entry that any of
// them ever had. Reservations that expired by then and are charged have become entries.
func (s *session) look(credential string, names []string, now int64) (buckets []*bucket, n int64) {
	for _, name := range names {
		buckets = append(buckets, s.bucket(credential, name))
	}
	for {
		n = now
		for _, b := range buckets {
			n = max(n, b.newest+1)
		}
		more := false
		for _, b := range buckets {
			more = b.lapse(n) || more
		}
		if !more {
			return buckets, n
		}
	}
}

// lookAt is look for one bucket.
func (s *session) lookAt(credential, name string, now int64) (*bucket, int64) {
	buckets, n := s.look(credential, []string{name}, now)
	return buckets[0], n
}

// expired is what is in a bucket's reservations that have expired.
type expired struct {
	units  int64 // that they still hold
	atMost int64 // that they could have turned out to take
}

// errLapsed ends a reading that has found a reservation that is to become an entry first.
var errLapsed = errors.New("a reservation has lapsed")

// lapse writes the entries of reservations that expired by n, if there are any. This is no part of
// the operation that comes upon them: it stays if that is refused.
func (b *bucket) lapse(n int64) bool {
	var due bool
	b.expired = expired{}
	if b.ends.Valid && b.ends.Int64 <= n {
		b.s.find("reservation_expired", []any{b.id, n}, &b.expired.units, &b.expired.atMost, &due)
	}
	switch {
	case !due && b.ends.Valid && b.ends.Int64 <= n && b.expired == (expired{}):
		return b.refresh() // that one was settled
	case !due:
		return false
	case b.s.reads:
		b.s.broken = errLapsed
		return false
	}
	wrote, newest, total := b.s.wrote, b.newest, b.total
	b.s.forget()
	b.s.change("lapse_stamps", b.id, n, newest)
	b.s.change("lapse_entries", b.id, total, newest)
	b.s.change("lapse_reservations", b.id, newest)
	b.s.find("entry_from_newest", []any{b.id, 0}, &b.newest, &b.total)
	if b.newest <= newest || b.total > quota.MaxTotal {
		b.damaged("a reservation that has expired cannot become an entry")
	}
	b.keep(nil)
	b.unwritten = true
	b.write()
	b.s.change("lapsed_trim", b.id, b.newest-b.retention, trimReservations)
	b.s.change("lapsed_trim_drawn", b.id, b.newest-b.retention, trimReservations)
	*b = *b.s.read(b.credential, b.name)
	b.s.wrote = wrote
	return b.s.broken == nil
}

// refresh reads the row again, and reports whether another reservation is the first to end now.
func (b *bucket) refresh() bool {
	wrote, ended := b.s.wrote, b.ends
	b.write()
	b.s.wrote = wrote
	*b = *b.s.read(b.credential, b.name)
	return b.ends != ended && b.s.broken == nil
}
