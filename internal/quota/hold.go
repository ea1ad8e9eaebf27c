package quota

import (
	"context"
	"errors"
	"time"
)

// Hold sets aside what a call may take, as Reserve does, before the call is sent. Like a charge, it
// is held back by the paces, by what it holds. Of a call that names a reservation, the most that it
// may take is drawn on that instead. SettleHold books the truth, GiveBack is for a call that never
// left. A denial is a DeniedError here. Where the ledger cannot be reached and the method passes all
// the same, the decision is Unmetered, and there is nothing to settle.
func (b *Budget) Hold(ctx context.Context, r ReserveRequest) (Decision, error) {
	ask := b.reserve
	if r.Reservation != "" {
		ask = b.drawMost
	}
	d, err := ask(ctx, r)
	switch {
	case err != nil && b.failsOpen(r.Call, err):
		b.Log.Warn("ledger cannot be reached: call passes unmetered, as configured",
			"method", r.Method, "error", err)
		return Decision{Allowed: true, Unmetered: true, At: time.Now().UTC(),
			Units: UnitsOf(r.Costs), Remaining: map[string]int64{}}, nil
	case err == nil && !d.Allowed:
		err = &DeniedError{Decision: d}
	}
	return d, err
}

// SettleHold books what a call took for which Hold answered held: see Settle.
func (b *Budget) SettleHold(ctx context.Context, held Decision, call Call) (Decision, error) {
	if call.Reservation != "" {
		return b.settleDrawn(ctx, held, call)
	}
	return b.Settle(ctx, held.Reservation, call)
}

// GiveBack gives back what Hold set aside or drew, for a call that surely never left.
func (b *Budget) GiveBack(ctx context.Context, held Decision, call Call) error {
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
