package job

import (
	"context"
	"errors"
	"maps"
	"time"

	"quotabudget/internal/quota"
)

// askTime is the timeout of one request to the ledger.
const askTime = 10 * time.Second

// patiently retries ask while the ledger is unreachable, until patience runs out. It always tries
// once.
func patiently(patience time.Duration, ask func(context.Context) error) error {
	return quota.Patience{Total: patience, Attempt: askTime}.Retry(context.Background(), ask)
}

// patience returns how long to retry the settlement. After that the hold lapses.
func (r *run) patience() time.Duration { return min(time.Minute, r.TTL) }

// giveBack releases the rest of the hold.
func (r *run) giveBack() {
	if r.passed.Entry != "" {
		if err := r.budget.GiveBack(context.Background(), r.passed, quota.Call{}); err != nil {
			r.Log.Error("cannot remove the run from the journal: it stays booked", "units", r.out.Held,
				"error", err)
		}
	}
	if r.out.Reservation == "" {
		return
	}
	err := patiently(r.patience(), func(ctx context.Context) error {
		return r.requests.giveBack(ctx)
	})
	if err != nil && !errors.Is(err, quota.ErrNoReservation) { // the command may have settled it
		r.lapses(err)
	}
}

// lapses logs that the run could not be settled.
func (r *run) lapses(err error) {
	what := "is booked when the hold lapses"
	if r.lapse() == quota.LapseRelease {
		what = "is given back when the hold lapses"
	}
	r.Log.Error("the run cannot be settled: what was held "+what, "reservation",
		r.out.Reservation, "units", r.out.Held, "lapses_at", r.out.ExpiresAt.UTC(), "error", err)
}

// settle books the usage of the command.
func (r *run) settle() {
	used := r.used()
	failed := r.out.Code != 0 && r.out.Signal == 0
	if r.Settle == SettleProxy || r.Settle == SettleExit && failed {
		r.giveBack()
		r.out.Took, r.out.Denied = r.requests.outcome()
		return
	}
	switch {
	case r.passed.Entry != "":
		r.settlePassed(used.costs)
		return
	case r.out.Reservation == "":
		r.bookBeyond(used.costs)
		return
	}
	within, beyond := r.split(used)
	var d quota.Decision
	err := patiently(r.patience(), func(ctx context.Context) (err error) {
		d, err = r.budget.Settle(ctx, r.out.Reservation, quota.Call{Method: r.Call.Method,
			Costs: within})
		return err
	})
	switch {
	case err == nil:
		r.out.Took = r.tookOf(used, d)
	case errors.Is(err, quota.ErrNoReservation):
		r.lateOrSettled(within)
	case errors.Is(err, quota.ErrKeyReused):
		r.Log.Debug("the command has settled the reservation itself",
			"reservation", r.out.Reservation)
	default:
		r.lapses(err)
	}
	r.bookBeyond(beyond)
}

// settlePassed books a run that was held in the journal because the ledger was unreachable.
func (r *run) settlePassed(used []quota.Cost) {
	took := quota.UnitsOf(used)
	var costs []quota.Cost
	for bucket, units := range r.out.Held { // a bucket without a report used all that was held
		if n, reported := took[bucket]; reported {
			units = n
		}
		took[bucket] = units
		costs = append(costs, quota.Cost{Bucket: bucket, Units: units})
	}
	for _, c := range used {
		if _, held := r.out.Held[c.Bucket]; !held {
			costs = append(costs, c)
		}
	}
	_, err := r.budget.Book(context.Background(),
		r.budget.NewBooking(r.passed, quota.Call{Costs: costs}, r.lapse()))
	if err != nil {
		r.Log.Error("cannot correct the journal: all that was held for the run is booked", "units",
			r.out.Held, "error", err)
		return
	}
	r.out.Took = took
}

// tookOf returns the units of a settled run. A bucket without a report used all that was held,
// drawn or not.
func (r *run) tookOf(used usage, settled quota.Decision) map[string]int64 {
	took := maps.Clone(r.out.Held)
	for _, c := range used.costs {
		if _, held := took[c.Bucket]; held {
			took[c.Bucket] = settled.Units[c.Bucket] + used.drawn[c.Bucket]
		}
	}
	return took
}

// lateOrSettled books the usage of a hold that no longer exists. The hold has lapsed and was
// released, unless the command settled it.
func (r *run) lateOrSettled(used []quota.Cost) {
	if r.lapse() != quota.LapseRelease || !r.lapsed(context.Background()) {
		r.Log.Debug("the command has ended the reservation itself",
			"reservation", r.out.Reservation)
		return
	}
	known := make(map[string]bool)
	for _, c := range used {
		known[c.Bucket] = true
	}
	for bucket, units := range r.out.Held {
		if !known[bucket] {
			used = append(used, quota.Cost{Bucket: bucket, Units: units})
		}
	}
	r.bookBeyond(used)
}

// lapsed reports whether a hold that no longer exists may have lapsed, by the ledger's clock,
// because this machine's may be slow. It returns true if the ledger is unreachable.
func (r *run) lapsed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	now, err := r.budget.Ledger.Time(ctx)
	return err != nil || !now.Before(r.out.ExpiresAt)
}

// bookBeyond books usage beyond the hold. The upstream has billed it, so no limit applies.
func (r *run) bookBeyond(costs []quota.Cost) {
	var some []quota.Cost
	for _, c := range costs {
		if c.Units > 0 {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		return
	}
	b := r.budget
	b.Observe, b.Unlimited = true, true
	var d quota.Decision
	err := patiently(r.patience(), func(ctx context.Context) (err error) {
		d, err = b.Charge(ctx, quota.Call{Costs: some, Key: "beyond:" + r.out.Run, Unpaced: true})
		return err
	})
	if err != nil {
		r.Log.Error("cannot book what the run took beyond its hold", "units",
			quota.UnitsOf(some), "error", err)
		return
	}
	if r.out.Took == nil {
		r.out.Took = make(map[string]int64)
	}
	addTo(r.out.Took, d.Units, 1)
}

// split divides the usage into units that the reservation settles and units beyond its buckets.
// Drawn units are already booked.
func (r *run) split(used usage) (within, beyond []quota.Cost) {
	buckets, err := quota.HeldBuckets(r.out.Reservation)
	if err != nil {
		return nil, nil
	}
	held := make(map[string]bool)
	for _, bucket := range buckets {
		held[bucket] = true
	}
	for _, c := range used.costs {
		if held[c.Bucket] {
			c.Units = max(c.Units-used.drawn[c.Bucket], 0)
			within = append(within, c)
		} else {
			beyond = append(beyond, c)
		}
	}
	return within, beyond
}
