package quota

import (
	"context"
	"errors"
	"slices"
)

// Hold sets aside what a call may take, as Reserve does, before the call is sent. Like a charge, it
// is held back by the paces, by what it holds. Where the estimates in flight could be too low by
// too much, it sets aside the most that the call can take. Of a call that names a reservation, the
// most that it may take is drawn on that instead. SettleHold books the truth, GiveBack is for a
// call that never left. A denial is a DeniedError here. Where the ledger cannot be reached and the
// method passes all the same, the decision is Unmetered, and there is nothing to settle. With any
// other error the decision has the reservation that may stand all the same, if the answer of the
// ledger was lost.
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
		return b.unmetered(ctx, c, err)
	case err == nil && !d.Allowed:
		err = &DeniedError{Decision: d}
	case err == nil && b.Slice != nil:
		b.Slice.Reached(ctx)
	case err != nil:
		d.Reservation = c.Reservation
	}
	return d, err
}

// atMost returns the costs with the most of each bounded estimate in its place.
func atMost(costs []Cost) []Cost {
	costs = slices.Clone(costs)
	for i, c := range costs {
		if c.Bounded {
			costs[i] = Cost{Bucket: c.Bucket, Units: max(c.Units, c.Most)}
		}
	}
	return costs
}

// SettleHold books what a call took for which Hold answered held: see Settle. It does not say what
// remains, since nobody asks. Nor is the answer kept if lapse, which is what becomes of the hold
// otherwise, is a charge: where an attempt may have settled it, ErrNoReservation says that it did,
// since what lapses into a charge can be settled late, or that the ledger has lost the hold. With
// that error the decision has the units that the attempt has booked.
func (b *Budget) SettleHold(ctx context.Context, held Decision, call Call, lapse Lapse) (
	Decision, error) {
	if call.Reservation != "" {
		return b.settleDrawn(ctx, held, call)
	}
	s, err := b.settlementOf(held.Reservation, call)
	if err != nil {
		return Decision{}, err
	}
	s.Once = lapse == LapseCharge
	s = s.withoutLimits()
	d, err := b.Ledger.Settle(ctx, s)
	if errors.Is(err, ErrNoReservation) {
		d.Units = UnitsOf(s.Costs)
		for bucket, units := range d.Units {
			if units == AllUnits {
				d.Units[bucket] = held.Units[bucket]
			}
		}
	}
	return d, err
}

// BookLost books what a call took for which Hold answered held, where the ledger has lost the hold:
// past all limits, since the upstream has billed it. Doing it twice is the same as doing it once.
func (b *Budget) BookLost(ctx context.Context, held Decision, call Call) (Decision, error) {
	d := Decision{Allowed: true, Units: map[string]int64{}, Remaining: map[string]int64{}}
	id, _, err := ParseReservation(held.Reservation)
	if err != nil {
		return d, err
	}
	truth := Charge{Key: "truth of " + id}
	for _, c := range b.across(call.Costs) {
		if c.Units > 0 && !b.onlyUnderWay(c) {
			truth.Costs = append(truth.Costs, c)
		}
	}
	return d, b.bookTruth(ctx, call, truth, &d)
}

// GiveBack gives back what Hold set aside or drew, for a call that surely never left.
func (b *Budget) GiveBack(ctx context.Context, held Decision, call Call) error {
	if held.Unmetered || held.Reservation == "" && call.Reservation == "" {
		return b.cancelUnmetered(ctx, held)
	}
	if call.Reservation != "" {
		return b.giveBack(ctx, held, call)
	}
	_, err := b.Release(ctx, held.Reservation)
	if errors.Is(err, ErrNoReservation) { // it has been
		return nil
	}
	return err
}

// LimitsOn are the limits that hold for the bucket, or the part of one.
func (b *Budget) LimitsOn(bucket string) []Limit {
	return b.limitsOf([]Cost{{Bucket: bucket}})
}
