package quota

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// A call of unknown price that names a reservation draws its maximum cost, so other calls do not
// affect it. The draw is charged at once, so it survives a crash. The actual units, once known,
// replace the draw, and the difference returns to the reservation.

// drawMost charges the call's maximum cost. Units that count only while the call is under way
// cannot be charged: it holds them until the call ends.
func (b *Budget) drawMost(ctx context.Context, r ReserveRequest) (Decision, error) {
	call := r.Call
	costs, err := b.Costs(call)
	if err != nil {
		return Decision{}, err
	}
	slots := r
	slots.Costs, slots.Reservation, slots.Lapse = nil, "", LapseRelease
	call.Costs = nil
	for _, c := range costs {
		if b.onlyUnderWay(c) {
			slots.Costs = append(slots.Costs, c)
		} else {
			call.Costs = append(call.Costs, Cost{Bucket: c.Bucket, Units: max(c.Units, c.Most)})
		}
	}
	var under Decision
	if len(slots.Costs) > 0 {
		if slots.Key != "" {
			slots.Key += " under way"
		}
		if _, under, err = b.reserveAs(ctx, slots); err != nil || !under.Allowed {
			return under, err
		}
	}
	d, err := b.Charge(ctx, call)
	if err != nil || !d.Allowed {
		return d, cmp.Or(err, b.endSlots(ctx, under))
	}
	d.Reservation = under.Reservation
	return d, nil
}

// onlyUnderWay reports whether the cost counts only while the call is under way.
func (b *Budget) onlyUnderWay(c Cost) bool {
	return OnlyConcurrent(b.LimitsOn(c.Bucket))
}

// InFlight reports whether a limit on concurrent calls applies to the costs. Such costs must be
// held.
func (b *Budget) InFlight(costs ...Cost) bool {
	return slices.ContainsFunc(b.limitsOf(bucketsOf(b.across(costs))),
		func(l Limit) bool { return l.Window.Concurrent })
}

// endSlots releases the units held while a drawn call was under way.
func (b *Budget) endSlots(ctx context.Context, slots Decision) error {
	if slots.Reservation == "" {
		return nil
	}
	_, err := b.Release(ctx, slots.Reservation)
	if errors.Is(err, ErrNoReservation) { // already released, or lapsed
		return nil
	}
	return err
}

// takeBack undoes the charge that drawMost made.
func (b *Budget) takeBack(ctx context.Context, drawn Decision, call Call) error {
	c := Charge{Credential: b.Credential, ID: drawn.Entry, Key: call.Key,
		Reservation: call.Reservation}
	for _, bucket := range slices.Sorted(maps.Keys(drawn.Units)) {
		c.Costs = append(c.Costs, Cost{Bucket: bucket, Units: drawn.Units[bucket]})
	}
	c.Costs = b.labelled(c.Costs, b.labelsOf(call).With(HeldLabels(call.Reservation)),
		call.Reservation)
	err := b.Ledger.Cancel(ctx, c, drawn)
	if errors.Is(err, ErrNoEntry) { // already given back
		return nil
	}
	return err
}

// settleDrawn replaces a charge of drawMost by call.Costs. It books the actual units first, so that
// no window counts too little in between. If the reservation has too few units left for both, the
// draw first returns to it, where held units count. Retries are safe: no step is taken twice.
func (b *Budget) settleDrawn(ctx context.Context, drawn Decision, call Call) (Decision, error) {
	buckets, err := HeldBuckets(call.Reservation)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Allowed: true, At: drawn.At, Units: map[string]int64{},
		Remaining: map[string]int64{}}
	for bucket := range drawn.Units {
		d.Units[bucket] = 0
	}
	own, others := Charge{Key: "truth of " + drawn.Entry}, Charge{Key: "rest of " + drawn.Entry}
	for _, c := range b.across(call.Costs) {
		switch {
		case b.onlyUnderWay(c):
		case c.Bucket == buckets[0]:
			own.Costs, own.Reservation = []Cost{c}, call.Reservation
		default:
			others.Costs = append(others.Costs, c)
		}
	}
	if err := b.endSlots(ctx, drawn); err != nil {
		return d, err
	}
	err = b.bookTruth(ctx, call, others, &d)
	if err == nil {
		err = b.bookTruth(ctx, call, own, &d)
	}
	if errors.Is(err, ErrKeyReused) { // an earlier attempt booked it without the reservation
		maps.Copy(d.Units, UnitsOf(own.Costs))
		err = nil
	}
	short, gone := errors.Is(err, ErrReservationShort), errors.Is(err, ErrNoReservation)
	if err != nil && !short && !gone {
		return d, err
	}
	back := b.takeBack(ctx, drawn, call)
	if back != nil || err == nil {
		return d, back
	}
	if short {
		err = b.bookTruth(ctx, call, own, &d)
	}
	if gone || errors.Is(err, ErrReservationShort) { // the call used more than its maximum
		own.Reservation = ""
		err = b.bookTruth(ctx, call, own, &d)
	}
	return d, err
}

// bookTruth charges the billed units regardless of the limits, and adds them to d. They count under
// the labels of the call's reservation, even if c does not draw on it.
func (b *Budget) bookTruth(ctx context.Context, call Call, c Charge, d *Decision) error {
	if c.Costs = used(c.Costs); len(c.Costs) == 0 {
		return nil
	}
	c.Credential, c.ID = b.Credential, cmp.Or(c.ID, NewID(time.Now()))
	c.Labels = b.labelsOf(call).With(HeldLabels(call.Reservation))
	c.Costs = b.labelled(c.Costs, c.Labels, call.Reservation)
	// the call is over, so it does not count as concurrent
	c.Limits = slices.DeleteFunc(slices.Clone(b.limitsOf(bucketsOf(c.Costs))),
		func(l Limit) bool { return l.Window.Concurrent })
	c.Unlimited, c.Manual, c.Observe = b.Unlimited, true, true
	booked, err := b.withNewValues(ctx, &c, b.Ledger.Charge)
	if err == nil {
		d.At, d.Entry = booked.At, booked.Entry
		if d.Units == nil {
			d.Units, d.Remaining = map[string]int64{}, map[string]int64{}
		}
		maps.Copy(d.Units, booked.Units)
		maps.Copy(d.Remaining, booked.Remaining)
	}
	return err
}
