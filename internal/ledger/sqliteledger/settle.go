package sqliteledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// Settle implements quota.Ledger.
func (l *Ledger) Settle(ctx context.Context, c quota.Settle) (quota.Decision, error) {
	if err := c.Check(); err != nil {
		return quota.Decision{}, err
	}
	return l.decide(ctx, nil, func(s *session) (quota.Decision, error) { return s.settle(c) })
}

// settlement is the end of a reservation in one bucket.
type settlement struct {
	ask         // units are those that were used
	live   bool // it has not expired; or
	lapsed bool // it has become an entry; or it is gone
	left   rest // of a live one
	entry  entryRow
	keeps  int64 // units of the entry that stay
}

// settle ends a reservation in all its buckets.
func (s *session) settle(c quota.Settle) (quota.Decision, error) {
	now := s.now()
	id, names, _ := quota.ParseReservation(c.Reservation)
	costs := make([]quota.Cost, len(names))
	for i, name := range names {
		costs[i] = quota.Cost{Bucket: name, Units: c.UnitsIn(name)}
	}
	q := s.asks(c.Credential, costs, c.Limits, now)
	until := now + quota.RetentionFor(c.Limits).Microseconds()
	for _, a := range q.list {
		until = max(until, now+a.retention)
	}
	kept := receipt{c.Credential, ofCommit, c.Reservation, settleText(costs), now, until}
	list, live := q.settlements(c.Reservation)
	if !live { // it may have been settled before
		if d, known, err := s.recall(kept); known {
			return d, err
		}
	}
	if err := q.check(list, c); err != nil {
		return quota.Decision{}, err
	}
	d := quota.Decision{
		Allowed: true, At: stamp(q.n), Units: map[string]int64{}, Remaining: map[string]int64{},
	}
	line := c.Labels.Encode()
	for _, a := range list {
		a.end(c.Reservation)
		if a.keeps > 0 && d.Entry == "" {
			d.Entry = id
		}
		if more := a.units - a.keeps; more > 0 {
			a.keep(c.Limits)
			a.record(q.n, more, c.ID, line)
			d.Entry = c.ID
		}
		d.Units[a.name] = a.units
		a.held -= a.left.units
		if left, limited := a.remaining(q.n, false); limited {
			d.Remaining[a.name] = left
		}
	}
	if !c.Once {
		s.remember(kept, d)
	}
	return d, nil
}

// settleText is what must be the same for a settlement to be answered again. Of one bucket it is in
// the words of earlier versions.
func settleText(costs []quota.Cost) string {
	switch {
	case len(costs) > 1:
		return requestText("settle", costs, "")
	case costs[0].Units == quota.AllUnits:
		return "commit of all that is left"
	}
	return fmt.Sprintf("commit of %d", costs[0].Units)
}

// settlements finds what is to be settled in each bucket, and whether some of it has not expired.
func (q asks) settlements(reservation string) (list []settlement, live bool) {
	list = make([]settlement, len(q.list))
	for i, a := range q.list {
		list[i] = a.settlement(reservation, q.n)
		live = live || list[i].live
	}
	return list, live
}

// check finds the units of each settlement. Errors: ErrNoReservation when there is nothing in any
// bucket, ErrReservationShort, ErrSettledLate.
func (q asks) check(list []settlement, c quota.Settle) error {
	found := func(a settlement) bool { return a.live || a.lapsed }
	if !slices.ContainsFunc(list, found) {
		return fmt.Errorf("%s: %w", c.Reservation, quota.ErrNoReservation)
	}
	for i := range list {
		a := &list[i]
		set := a.left.units + a.entry.units
		if a.units == quota.AllUnits || !a.live && !a.lapsed {
			a.units = set
		}
		if c.Within && a.units > set {
			return fmt.Errorf("%s: %d units of %s asked for, %d left: %w", c.Reservation,
				a.units, a.name, set, quota.ErrReservationShort)
		}
	}
	for i := range list {
		a := &list[i]
		a.keeps = min(a.units, a.entry.units)
		if a.keeps == a.entry.units {
			continue
		}
		if err := a.alterable(a.entry.at, a.entry.units, quota.ErrSettledLate); err != nil {
			return fmt.Errorf("%s in bucket %s: %w", c.Reservation, a.name, err)
		}
	}
	return nil
}

// settlement looks up what has become of a reservation in one bucket.
func (a ask) settlement(reservation string, n int64) settlement {
	t := settlement{ask: a}
	left, err := a.reservation(reservation, n, 0)
	if t.live = err == nil; t.live {
		t.left = left
		return t
	}
	e := &t.entry
	t.lapsed = a.s.find("lapsed_find", []any{a.id, reservation},
		&e.at, &e.id, &e.units, &e.total, &e.labels)
	if t.lapsed && (e.units < 1 || e.units > quota.MaxUnits) {
		a.damaged(unsteady)
	}
	return t
}

// end removes the reservation, and of an entry that it has become all but keeps units.
func (a *settlement) end(reservation string) {
	if a.live {
		a.endReservation(reservation, a.left)
	}
	if !a.lapsed {
		return
	}
	a.s.forget()
	a.s.change("lapsed_remove", a.id, reservation, a.entry.at)
	if less := a.entry.units - a.keeps; less > 0 {
		a.takeOut(a.entry.at, less)
		if a.keeps > 0 {
			a.s.change("entry_add", a.id, a.entry.at, a.entry.id, a.keeps, a.entry.total-less,
				a.entry.labels)
		}
		a.s.change("bucket_lower", a.id, less)
		*a.bucket = *a.s.read(a.credential, a.name)
	}
}

// Extend implements quota.Ledger.
func (l *Ledger) Extend(ctx context.Context, e quota.Extend) (until time.Time, err error) {
	if err := e.Check(); err != nil {
		return time.Time{}, err
	}
	err = l.update(ctx, func(s *session) (err error) {
		until, err = s.extend(e)
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	return until, nil
}

func (s *session) extend(e quota.Extend) (time.Time, error) {
	_, names, _ := quota.ParseReservation(e.Reservation)
	buckets, n := s.look(e.Credential, names, s.now())
	for _, b := range buckets {
		if _, err := b.reservation(e.Reservation, n, 0); err != nil {
			return time.Time{}, err
		}
	}
	until := int64(quota.Never)
	for _, b := range buckets {
		var ends int64
		b.s.change("reservation_extend", b.id, e.Reservation, n+e.TTL.Microseconds())
		b.s.find("reservation_ends", []any{b.id, e.Reservation}, &ends)
		until = min(until, ends)
	}
	return stamp(until), nil
}

// Release implements quota.Ledger.
func (l *Ledger) Release(ctx context.Context, credential, id string) (
	given map[string]int64, err error) {
	_, names, err := quota.ParseReservation(id)
	if err != nil {
		return nil, err
	}
	err = l.run(ctx, work{keeps: true, do: func(s *session) (err error) {
		given, err = s.release(credential, id, names)
		return err
	}})
	if err != nil {
		return nil, err
	}
	return given, nil
}

func (s *session) release(credential, id string, names []string) (map[string]int64, error) {
	given := make(map[string]int64)
	buckets, n := s.look(credential, names, s.now())
	left := make([]rest, len(buckets))
	for i, b := range buckets {
		var err error
		if left[i], err = b.reservation(id, n, 0); err != nil {
			return nil, err
		}
		given[b.name] = left[i].units
	}
	for i, b := range buckets {
		b.endReservation(id, left[i])
	}
	return given, nil
}
