package sqliteledger

import (
	"database/sql"
	"fmt"

	"quotabudget/internal/quota"
)

// live is what the bucket's reservations hold that have not expired.
func (b *bucket) live() int64 {
	live := b.held - b.expired.units
	if live < 0 || live > quota.MaxTotal {
		b.damaged("what its reservations hold cannot be read: %d units, %d of them expired",
			b.held, b.expired.units)
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

// lapsing reports whether some of what is held becomes entries if nobody settles it.
func (b *bucket) lapsing(n int64) (some bool) {
	b.s.find("reservation_lapsing", []any{b.id, n}, &some)
	return some
}

// rest is what is left of a reservation.
type rest struct {
	units int64
	most  int64 // that it can turn out to take
}

// reservation looks up what is left of a reservation when it has not expired at n. Errors:
// ErrNoReservation, and ErrReservationShort when fewer than units are left.
func (b *bucket) reservation(id string, n, units int64) (r rest, err error) {
	var drawn int64
	m, found := b.s.kept.made[madeName{b.id, id}]
	reserved, ends := m.units, m.ends
	if r.most = m.most; !found {
		found = b.s.find("reservation_find", []any{b.id, id}, &reserved, &drawn, &ends, &r.most)
	}
	if drawn < 0 || drawn > reserved || reserved > quota.MaxUnits {
		b.damaged("the reservation %s of %d units, %d of them drawn", id, reserved, drawn)
	}
	r.units = reserved - drawn
	switch {
	case !found || n >= ends:
		return rest{}, fmt.Errorf("%s: %w", id, quota.ErrNoReservation)
	case units > r.units:
		return r, fmt.Errorf("%s: %d units asked for, %d left: %w", id, units, r.units,
			quota.ErrReservationShort)
	}
	return r, nil
}

// endReservation removes one that is live, of which so much is left.
func (b *bucket) endReservation(id string, left rest) {
	b.s.change("reservation_remove", b.id, id)
	delete(b.s.kept.made, madeName{b.id, id})
	b.held, b.atMost = b.held-left.units, b.atMost-left.most
}
