package quota

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Hold sets aside what a call may use, as Reserve does, before the call is sent. Paces delay it
// like a charge of the held units. If the estimates in flight may be too low by too much, Hold sets
// the call's maximum aside. A call that names a reservation draws its maximum on that instead. Book
// books the actual units; GiveBack is for a call that was not sent. A denial is a DeniedError. If
// the ledger cannot be reached but the method may pass, the decision is Unmetered.
func (b *Budget) Hold(ctx context.Context, r ReserveRequest) (Decision, error) {
	if r.Reservation != "" {
		d, err := b.drawMost(ctx, r)
		if err == nil && !d.Allowed {
			err = &DeniedError{Decision: d}
		}
		return d, err
	}
	c, d, err := b.reserveAs(ctx, r)
	if err == nil && d.Limit == TooManyEstimates && !d.Allowed {
		r.Costs = atMost(r.Costs)
		c, d, err = b.reserveAs(ctx, r)
	}
	switch {
	case err != nil && b.failsOpen(r.Call, err):
		return b.unmetered(ctx, c, c.Reservation, err)
	case err == nil && !d.Allowed:
		err = &DeniedError{Decision: d}
	case err == nil:
		b.reached(ctx)
	}
	return d, err
}

// atMost returns the costs with each bounded estimate raised to its maximum.
func atMost(costs []Cost) []Cost {
	costs = slices.Clone(costs)
	for i, c := range costs {
		if c.Bounded {
			costs[i] = Cost{Bucket: c.Bucket, Units: max(c.Units, c.Most)}
		}
	}
	return costs
}

// NewBooking returns the line for the usage of a call that Hold held. Its ID stays the same in
// every attempt to book it.
func (b *Budget) NewBooking(held Decision, call Call, lapse Lapse) Booking {
	now := time.Now()
	call.Labels = b.labelsOf(call)
	return Booking{ID: NewID(now), At: now.UTC(), Call: call, Held: held, Lapse: lapse}
}

// Book books what a call used, regardless of the limits, because the upstream has billed it. The
// journal keeps the line from before the ledger is asked until it is booked. Booking a line again
// has no effect. The decision has the booked units: nil if another caller settled the hold with
// other units, which stay.
func (b *Budget) Book(ctx context.Context, l Booking) (Decision, error) {
	journaled := b.Journal != nil && !l.Held.Unmetered
	if journaled {
		if err := b.Journal.Keep(ctx, l); err != nil {
			b.Log.Warn("cannot write to the journal: a crash would lose what a call used",
				"error", err)
		}
	}
	d, err := b.book(ctx, l)
	if journaled && err == nil {
		if _, err := b.Journal.Remove(ctx, l); err != nil { // harmless: Post will find it booked
			b.Log.Debug("cannot remove a line of the journal", "id", l.ID, "error", err)
		}
	}
	return d.unlabelled(), err
}

func (b *Budget) book(ctx context.Context, l Booking) (Decision, error) {
	switch {
	case l.Held.Unmetered:
		l.Call.Costs = b.across(l.Call.Costs)
		return Decision{Units: UnitsOf(l.Call.Costs)}, b.correct(ctx, l.Held, l.Call)
	case l.Call.Reservation != "":
		return b.settleDrawn(ctx, l.Held, l.Call)
	}
	s, err := b.settlementOf(l.Held.Reservation, l.Call)
	if err != nil {
		return Decision{}, err
	}
	s.ID, s.Once = l.ID, l.Lapse == LapseCharge
	s.Costs, s.Limits = s.SettledCosts(), nil // the caller needs no remaining units
	d, err := b.Ledger.Settle(ctx, s)
	switch {
	case errors.Is(err, ErrNoReservation):
		// An earlier attempt may have settled the hold although its reply was lost. The log then
		// has an entry of the line or of the lapsed hold. Otherwise the ledger has lost the hold,
		// or released it when it lapsed.
		id, _, _ := ParseReservation(l.Held.Reservation)
		var at time.Time
		at, err = b.findEntry(ctx, s.Costs, l.Held.At.Add(-time.Microsecond), l.ID, id)
		if err == nil && at.IsZero() {
			l.Call.Reservation = l.Held.Reservation
			return b.bookLost(ctx, l, s.Costs)
		}
		d = Decision{Allowed: true, Units: UnitsOf(s.Costs)}
		for bucket, n := range d.Units {
			if n == AllUnits { // the settlement booked all that was held
				d.Units[bucket] = l.Held.Units[bucket]
			}
		}
	case errors.Is(err, ErrKeyReused): // another caller has settled the hold, with other units
		d, err = Decision{Allowed: true}, nil
	}
	if err != nil {
		return d, err
	}
	return d, b.bookUnheld(ctx, l, b.across(l.Call.Costs))
}

// bookLost books the usage of a call whose hold is gone from the ledger. held has the costs in the
// buckets of the hold.
func (b *Budget) bookLost(ctx context.Context, l Booking, held []Cost) (Decision, error) {
	id, _, _ := ParseReservation(l.Held.Reservation) // the caller has checked it
	b.Log.Warn("a hold is gone from the ledger: booking what was used",
		"reservation", l.Held.Reservation)
	costs, wholes := slices.Clone(l.Call.Costs), []Cost{}
	for _, c := range held {
		switch all := (Cost{Bucket: c.Bucket, Units: l.Held.Units[c.Bucket]}); {
		case c.Units != AllUnits || IsLabelBucket(c.Bucket):
		case WholeOf(c.Bucket) == c.Bucket:
			wholes = append(wholes, all)
		default:
			costs = append(costs, all) // also counts in the sum of the parts
		}
	}
	costs = slices.DeleteFunc(b.across(costs),
		func(c Cost) bool { return indexOf(wholes, c.Bucket) >= 0 })
	costs = append(costs, wholes...)
	d := Decision{Allowed: true, Units: map[string]int64{}, Remaining: map[string]int64{}}
	costs = slices.DeleteFunc(costs, b.onlyUnderWay)
	err := b.bookTruth(ctx, l.Call, Charge{Key: "truth of " + id, Costs: costs}, &d)
	return d, err
}

// lostFor is how old a lost reservation may be when its call is booked. The ledger keeps the answer
// to a settlement longer, so an unknown reservation of that age was not settled.
const lostFor = 48 * time.Hour

// SettleLost books what a call used of a reservation that the ledger has lost, as in a failover,
// regardless of the limits. Repeating it books nothing more. Errors: ErrNoReservation if the
// reservation is older than two days, ErrMalformed if the costs leave out one of its buckets,
// ErrKeyReused after other costs.
func (b *Budget) SettleLost(ctx context.Context, reservation string, call Call) (Decision, error) {
	id, held, err := ParseReservation(reservation)
	if err != nil {
		return Decision{}, err
	}
	for _, bucket := range withoutLabels(held) {
		if indexOf(b.across(call.Costs), bucket) < 0 {
			return Decision{}, malformed("costs: must include the units of %s: the hold is gone", bucket)
		}
	}
	now, err := b.Ledger.Time(ctx)
	if err != nil {
		return Decision{}, err
	}
	if madeAt, ok := idTime(id); !ok || now.Sub(madeAt).Abs() > lostFor {
		return Decision{}, fmt.Errorf("%s: %w", reservation, ErrNoReservation)
	}
	// A client can invent the name: use its labels, but let the configuration decide the buckets.
	call.Labels = call.Labels.With(HeldLabels(reservation))
	d, err := b.bookLost(ctx, Booking{Held: Decision{Reservation: reservation}, Call: call},
		nil)
	return d.unlabelled(), err
}

// bookUnheld books the costs of a call in buckets where nothing was held for it.
func (b *Budget) bookUnheld(ctx context.Context, l Booking, costs []Cost) error {
	id, held, _ := ParseReservation(l.Held.Reservation) // the caller has checked it
	costs = slices.DeleteFunc(slices.Clone(costs), func(c Cost) bool {
		return slices.Contains(held, c.Bucket)
	})
	return b.bookTruth(ctx, l.Call, Charge{Key: "unheld of " + id, Costs: costs}, new(Decision))
}

// GiveBack releases what Hold set aside or drew, for a call that certainly was not sent.
func (b *Budget) GiveBack(ctx context.Context, held Decision, call Call) error {
	switch {
	case held.Unmetered:
		return b.correct(ctx, held, Call{})
	case call.Reservation != "":
		// Both calls run, even if the first fails.
		return cmp.Or(b.takeBack(ctx, held, call), b.endSlots(ctx, held))
	}
	_, err := b.Ledger.Release(ctx, Release{b.Credential, held.Reservation, true})
	if errors.Is(err, ErrNoReservation) { // already released, or settled
		return nil
	}
	return err
}

// LimitsOf returns the limits that apply to the call, including those of its labels' values.
func (b *Budget) LimitsOf(call Call) []Limit {
	costs, err := b.Costs(call)
	if err != nil {
		return nil
	}
	_, limits := b.spread(costs, b.labelsOf(call), call.Reservation)
	return limits
}

// LimitsOn returns the limits that apply to the bucket, or to the part of a split one.
func (b *Budget) LimitsOn(bucket string) []Limit {
	return b.limitsOf([]string{bucket})
}
