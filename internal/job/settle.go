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
	err := patiently(r.patience(), r.requests.giveBack)
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
	case r.Lapse == quota.LapseRelease:
		what = "what was held is given back when the hold lapses"
	}
	r.Log.Error("the run cannot be settled: "+what, "reservation",
		r.out.Reservation, "units", r.out.Held, "lapses_at", r.out.ExpiresAt.UTC(), "error", err)
}

// usage is the units that a command used.
type usage struct {
	units map[string]int64 // by bucket; a bucket not listed used all that was held
	drawn map[string]int64 // the part of units that is already booked
}

// used returns the units that the command has reported so far.
func (r *run) used() (u usage) {
	if r.out.Reservation != "" {
		u.drawn = r.drawn()
	}
	if r.report == nil {
		return u
	}
	total := r.report.all()
	u.units = total.units
	if total.bad > 0 {
		r.Log.Warn("the report has lines that cannot be read: booking at least the held units",
			"lines", total.bad, "first", total.first)
		for bucket, units := range u.units {
			u.units[bucket] = max(units, r.out.Held[bucket])
		}
	}
	return u
}

// drawn returns the units that the command drew from the reservation. Once the reservation is gone,
// these are the run's entries in the log. If the ledger cannot report them, they are booked twice
// rather than not at all.
func (r *run) drawn() map[string]int64 {
	drawn := make(map[string]int64)
	buckets, _ := quota.HeldBuckets(r.out.Reservation)
	if len(buckets) != 1 { // a reservation of several buckets cannot be drawn on
		return nil
	}
	err := patiently(0, func(ctx context.Context) error {
		list, err := r.budget.Ledger.Reservations(ctx, r.budget.Credential, buckets[0])
		for _, held := range list {
			if held.ID == r.out.Reservation {
				drawn[held.Bucket] = held.Drawn
				return nil
			}
		}
		if err == nil {
			drawn[buckets[0]], err = r.logged(ctx, buckets[0])
		}
		return err
	})
	if err != nil {
		r.Log.Debug("cannot read what the command drew from the reservation", "error", err)
	}
	return drawn
}

// logged returns the units of the run's entries in a bucket since the hold, without the entry of
// a hold that lapsed.
func (r *run) logged(ctx context.Context, bucket string) (units int64, err error) {
	id, _, _ := quota.ParseReservation(r.out.Reservation)
	entries, err := r.budget.Ledger.Entries(ctx, quota.Query{Credential: r.budget.Credential,
		Bucket: bucket, Since: r.heldAt})
	for _, e := range entries {
		if e.Labels[quota.LabelRun] == r.out.Run && e.ID != id {
			units += e.Units
		}
	}
	return units, err
}

func costsOf(units map[string]int64) (costs []quota.Cost) {
	for _, bucket := range slices.Sorted(maps.Keys(units)) {
		costs = append(costs, quota.Cost{Bucket: bucket, Units: units[bucket]})
	}
	return costs
}

// settle books the usage of the command.
func (r *run) settle() {
	used := r.used()
	failed := r.out.Code != 0 && r.out.Signal == 0
	unknown := r.Settle == SettleReport || r.Settle == SettleExit
	if r.replayed && r.out.Reservation != "" && unknown {
		r.Log.Warn("an earlier run with the same key was not settled: also booking its hold",
			"reservation", r.out.Reservation)
		failed = false
		for bucket := range used.units {
			used.units[bucket] += r.out.Held[bucket]
		}
	}
	switch {
	case r.Settle == SettleProxy || r.Settle == SettleExit && failed:
		r.giveBack()
		r.out.Took, r.out.Denied = r.requests.outcome()
	case r.passed.Entry != "":
		r.settlePassed(used.units)
	case r.out.Reservation == "":
		r.bookUnheld(used.units)
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
	undrawn := maps.Clone(used.units)
	for bucket := range undrawn {
		undrawn[bucket] = max(undrawn[bucket]-used.drawn[bucket], 0)
	}
	// The ledger keeps the answer (LapseRelease) for a later run with the same key.
	line := b.NewBooking(hold, quota.Call{Method: r.Call.Method, Costs: costsOf(undrawn)},
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
			r.tookOf(used, quota.Decision{Units: undrawn}), "error", err)
	}
}

// settlePassed books a run that was held in the journal because the ledger was unreachable.
func (r *run) settlePassed(used map[string]int64) {
	units := maps.Clone(r.out.Held) // a bucket without a report used all that was held
	for part, n := range r.out.Held {
		if whole := quota.WholeOf(part); whole != part && units[whole] > 0 {
			units[whole] -= n // the booking adds the sum of the parts
		}
	}
	maps.Copy(units, used)
	d, err := r.budget.Book(context.Background(),
		r.budget.NewBooking(r.passed, quota.Call{Costs: costsOf(units)}, r.Lapse))
	if err != nil {
		r.Log.Error("cannot correct the journal: all that was held for the run is booked", "units",
			r.out.Held, "error", err)
		return
	}
	r.out.Took = d.Units
}

// tookOf returns the units of a settled run. A bucket without a report used all that was held,
// drawn or not.
func (r *run) tookOf(used usage, settled quota.Decision) map[string]int64 {
	units := maps.Clone(r.out.Held)
	for bucket, n := range settled.Units {
		units[bucket] = n + used.drawn[bucket]
	}
	for bucket, n := range used.units {
		if _, held := units[bucket]; held {
			units[bucket] = settled.Units[bucket] + used.drawn[bucket]
		} else if n > 0 {
			units[bucket] = n
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
func (r *run) bookUnheld(units map[string]int64) {
	maps.DeleteFunc(units, func(_ string, n int64) bool { return n == 0 })
	if len(units) == 0 {
		return
	}
	b := r.budget
	b.Observe, b.Unlimited = true, true
	err := patiently(r.patience(), func(ctx context.Context) error {
		d, err := b.Charge(ctx, quota.Call{Costs: costsOf(units), Key: "beyond:" + r.out.Run,
			Unpaced: true})
		r.out.Took = d.Units
		return err
	})
	if err != nil {
		r.out.Took = nil
		r.Log.Error("cannot book the use of the run beyond its hold", "units", units, "error", err)
	}
}
