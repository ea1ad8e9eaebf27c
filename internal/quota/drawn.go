package quota

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// A call of an unknown price that names a reservation draws the most that it may take: what others
// do meanwhile is no matter to it. That is charged at once, so a crash leaves it charged. Once the
// truth is known, it takes that place, and the rest is in the reservation again.

// drawMost charges the most that the call may take. What counts only while it is under way cannot
// be charged: that is set aside until the call ends.
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
		if under, err = b.reserve(ctx, slots); err != nil || !under.Allowed {
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
	return OnlyConcurrent(LimitsOf(c.Bucket, b.limitsOf([]Cost{c})))
}

// endSlots gives back what was set aside while a drawn call was under way.
func (b *Budget) endSlots(ctx context.Context, of Decision) error {
	if of.Reservation == "" {
		return nil
	}
	_, err := b.Release(ctx, of.Reservation)
	if errors.Is(err, ErrNoReservation) { // it has been, or has lapsed
		return nil
	}
	return err
}

// giveBack takes back a charge of drawMost.
func (b *Budget) giveBack(ctx context.Context, drawn Decision, call Call) error {
	return cmp.Or(b.takeBack(ctx, drawn, call), b.endSlots(ctx, drawn))
}

func (b *Budget) takeBack(ctx context.Context, drawn Decision, call Call) error {
	c := Charge{Credential: b.Credential, ID: drawn.Entry, Key: call.Key,
		Reservation: call.Reservation}
	for _, bucket := range slices.Sorted(maps.Keys(drawn.Units)) {
		c.Costs = append(c.Costs, Cost{Bucket: bucket, Units: drawn.Units[bucket]})
	}
	c.Costs = b.labelled(c.Costs, b.labelsOf(call).With(heldLabels(call.Reservation)))
	err := b.Ledger.Cancel(ctx, c, drawn)
	if errors.Is(err, ErrNoEntry) { // it was taken back before
		return nil
	}
	return err
}

// settleDrawn books call.Costs in the place of a charge of drawMost. The truth is booked first, so
// that no window counts too little in between. Where the reservation has not enough left for that
// beside what was drawn, it gets this back before: there, units count as long as they are set
// aside. It may be asked again when it could not be answered: no step is taken twice.
func (b *Budget) settleDrawn(ctx context.Context, drawn Decision, call Call) (Decision, error) {
	of, err := HeldBuckets(call.Reservation)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Allowed: true, At: drawn.At, Units: map[string]int64{},
		Remaining: map[string]int64{}}
	for bucket := range drawn.Units {
		d.Units[bucket] = 0
	}
	own, rest := Charge{Key: "truth of " + drawn.Entry}, Charge{Key: "rest of " + drawn.Entry}
	for _, c := range b.across(call.Costs) {
		switch {
		case c.Units == 0, b.onlyUnderWay(c):
		case c.Bucket == of[0]:
			own.Costs, own.Reservation = []Cost{c}, call.Reservation
		default:
			rest.Costs = append(rest.Costs, c)
		}
	}
	if err := b.endSlots(ctx, drawn); err != nil {
		return d, err
	}
	err = b.bookTruth(ctx, call, rest, &d)
	if err == nil {
		err = b.bookTruth(ctx, call, own, &d)
	}
	if errors.Is(err, ErrKeyReused) { // an earlier attempt has booked it without the reservation
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
	if gone || errors.Is(err, ErrReservationShort) { // it took more than the most
		own.Reservation = ""
		err = b.bookTruth(ctx, call, own, &d)
	}
	return d, err
}

// bookTruth charges what was billed, whatever the limits, and adds it to d.
func (b *Budget) bookTruth(ctx context.Context, call Call, c Charge, d *Decision) error {
	if len(c.Costs) == 0 {
		return nil
	}
	c.Credential, c.ID = b.Credential, cmp.Or(c.ID, NewID(time.Now()))
	c.Labels = b.labelsOf(call).With(heldLabels(call.Reservation))
	c.Costs = b.labelled(c.Costs, c.Labels)
	// the call is over, so it takes no place among those at once
	c.Limits = slices.DeleteFunc(slices.Clone(b.limitsOf(c.Costs)),
		func(l Limit) bool { return l.Window.Concurrent })
	c.Unlimited, c.Manual, c.Observe = b.Unlimited, true, true
	booked, err := b.askCharge(ctx, &c)
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
