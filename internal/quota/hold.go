package quota

import (
	"context"
	"time"
)

// Hold sets aside what a call may take, as Reserve does, before the call is sent. A denial is a
// DeniedError here. Where the ledger cannot be reached and the method passes all the same, the
// decision is Unmetered, and there is nothing to settle.
func (b *Budget) Hold(ctx context.Context, r ReserveRequest) (Decision, error) {
	d, err := b.Reserve(ctx, r)
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

// LimitsOn are the limits that hold for the bucket, or the part of one.
func (b *Budget) LimitsOn(bucket string) []Limit {
	return b.limitsOf([]Cost{{Bucket: bucket}})
}
