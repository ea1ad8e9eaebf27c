package job

import (
	"context"
	"errors"
	"maps"
	"slices"
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
	what := "if the ledger still has the hold, it is booked when it lapses"
	switch {
	case errors.Is(err, quota.ErrSettledLate):
		what = "its hold has lapsed, and stays booked"
	case r.lapse() == quota.LapseRelease:
		what = "what was held is given back when the hold lapses"
	}
	r.Log.Error("the run cannot be settled: "+what, "reservation",
		r.out.Reservation, "units", r.out.Held, "lapses_at", r.out.ExpiresAt.UTC(), "error", err)
}

// settle books the usage of the command.
func (r *run) settle() {
	used := r.used()
	failed := r.out.Code != 0 && r.out.Signal == 0
	switch {
	case r.Settle == SettleProxy || r.Settle == SettleExit && failed:
		r.giveBack()
		r.out.Took, r.out.Denied = r.requests.outcome()
	case r.passed.Entry != "":
		r.settlePassed(used.costs)
	case r.out.Reservation == "":
		r.bookUnheld(used.costs)
	default:
		r.settleHold(used)
	}
}

// settleHold books the usage in place of the hold, once, even if the hold is gone. If the ledger
// stays unreachable, the line waits in the journal, because the ledger may come back without the
// hold.
func (r *run) settleHold(used usage) {
	b := r.budget
	b.Unlimited, b.Log, b.Journal = true, r.Log, nil
	hold := quota.Decision{At: r.heldAt, Reservation: r.out.Reservation,
		Units: maps.Clone(r.out.Held)}
	addTo(hold.Units, used.drawn, -1)
	// The ledger keeps the answer (LapseRelease) for a later run with the same key.
	line := b.NewBooking(hold, quota.Call{Method: r.Call.Method, Costs: used.undrawn()},
		quota.LapseRelease)
	var d quota.Decision
	err := patiently(r.patience(), func(ctx context.Context) (err error) {
		d, err = b.Book(ctx, line)
		return err
	})
	switch {
	case err == nil && d.Units != nil:
		r.out.Took = r.tookOf(used, d)
	case err == nil:
		r.Log.Debug("the command has settled the reservation itself",
			"reservation", r.out.Reservation)
	case !quota.IsAway(err) || r.budget.Journal == nil ||
		r.budget.Journal.Keep(context.Background(), line) != nil:
		r.lapses(err)
	default:
		r.Log.Error("the run cannot be settled: its usage waits in this host's journal, and is "+
			"booked once the ledger can be reached", "reservation", r.out.Reservation, "units",
			r.tookOf(used, quota.Decision{Units: quota.UnitsOf(line.Call.Costs)}), "error", err)
	}
}

// undrawn returns the costs without the units that are already booked.
func (u usage) undrawn() (costs []quota.Cost) {
	for _, c := range u.costs {
		c.Units = max(c.Units-u.drawn[c.Bucket], 0)
		costs = append(costs, c)
	}
	return costs
}

// settlePassed books a run that was held in the journal because the ledger was unreachable.
func (r *run) settlePassed(used []quota.Cost) {
	total := quota.UnitsOf(used)
	var costs []quota.Cost
	for bucket, units := range r.out.Held { // a bucket without a report used all that was held
		if n, reported := total[bucket]; reported {
			units = n
		}
		total[bucket] = units
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
	r.out.Took = total
}

// tookOf returns the units of a settled run. A bucket without a report used all that was held,
// drawn or not.
func (r *run) tookOf(used usage, settled quota.Decision) map[string]int64 {
	units := maps.Clone(r.out.Held)
	for _, c := range used.costs {
		if _, held := units[c.Bucket]; held {
			units[c.Bucket] = settled.Units[c.Bucket] + used.drawn[c.Bucket]
		} else if c.Units > 0 {
			units[c.Bucket] = c.Units
		}
	}
	return units
}

// lapsed reports whether a hold that no longer exists may have lapsed, by the ledger's clock,
// because this machine's may be slow. It returns true if the ledger is unreachable.
func (r *run) lapsed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	now, err := r.budget.Ledger.Time(ctx)
	return err != nil || !now.Before(r.out.ExpiresAt)
}

// bookUnheld books the usage of a run that held nothing. The upstream has billed it, so no limit
// applies.
func (r *run) bookUnheld(costs []quota.Cost) {
	costs = slices.DeleteFunc(costs, func(c quota.Cost) bool { return c.Units == 0 })
	if len(costs) == 0 {
		return
	}
	b := r.budget
	b.Observe, b.Unlimited = true, true
	err := patiently(r.patience(), func(ctx context.Context) error {
		d, err := b.Charge(ctx, quota.Call{Costs: costs, Key: "beyond:" + r.out.Run,
			Unpaced: true})
		r.out.Took = d.Units
		return err
	})
	if err != nil {
		r.out.Took = nil
		r.Log.Error("cannot book what the run took beyond its hold", "units",
			quota.UnitsOf(costs), "error", err)
	}
}
