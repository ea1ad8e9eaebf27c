package job

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"quotabudget/internal/quota"
)

// Ceiling limits the units of one run. The zero Ceiling limits nothing.
type Ceiling struct {
	Units  int64
	Bucket string // counts this bucket and its parts only; "" counts every bucket
}

// count returns the units that the ceiling counts. Units booked in both a split bucket and one of
// its parts, because a limit spans the parts, count once.
func (c Ceiling) count(units map[string]int64) (sum int64) {
	for bucket, n := range units {
		whole := quota.WholeOf(bucket)
		_, twice := units[whole]
		if (c.Bucket == "" || c.Bucket == bucket || c.Bucket == whole) &&
			(whole == bucket || !twice) {
			sum += n
		}
	}
	return sum
}

// lower reduces costs until the ceiling allows them. A bucket with no units left is dropped.
func (c Ceiling) lower(costs []quota.Cost) (lowered []quota.Cost) {
	left := c.Units
	for _, cost := range costs {
		if c.count(map[string]int64{cost.Bucket: 1}) > 0 {
			cost.Units, cost.Most = min(cost.Units, left), 0
			left -= cost.Units
		}
		if cost.Units > 0 {
			lowered = append(lowered, cost)
		}
	}
	return lowered
}

// Drawing is the ledger of a command's requests. It draws their units from the run's reservation
// while that lasts, charges the rest like any call, and denies units beyond the run's ceiling.
// Calls for other credentials pass through.
type Drawing struct {
	quota.BudgetLedger
	budget                  quota.Budget // of the run
	credential, reservation string
	bucket                  string // the reservation's only bucket; or ""
	ceiling                 Ceiling

	mu     sync.Mutex
	held   map[string]int64            // in the reservation, drawn or not
	beyond map[string]int64            // charged or held outside the reservation
	open   map[string]map[string]int64 // the part of beyond that is held, by reservation
	drawn  map[string]bool             // IDs of the charges that were drawn
	denied int                         // calls denied by the ceiling
}

// newDrawing returns the ledger of the run's requests.
func (r *run) newDrawing() *Drawing {
	d := &Drawing{BudgetLedger: r.budget.Ledger, budget: r.budget,
		credential: r.budget.Credential, ceiling: r.Max, reservation: r.out.Reservation,
		held: map[string]int64{}, beyond: map[string]int64{},
		open: map[string]map[string]int64{}, drawn: map[string]bool{}}
	if d.reservation != "" {
		maps.Copy(d.held, r.out.Held)
	}
	buckets, err := quota.HeldBuckets(d.reservation)
	if err == nil && len(buckets) == 1 { // a reservation of several buckets cannot be drawn on
		d.bucket = buckets[0]
	}
	return d
}

// Charge draws the units that the reservation covers, and charges the rest.
func (l *Drawing) Charge(ctx context.Context, c quota.Charge) (quota.Decision, error) {
	if c.Credential != l.credential || c.Reservation != "" || c.DryRun {
		return l.BudgetLedger.Charge(ctx, c)
	}
	units := quota.UnlabelledUnits(quota.UnitsOf(c.Costs))
	if _, ok := units[l.bucket]; ok {
		d, err := l.draw(ctx, c, without(units, l.bucket))
		if !errors.Is(err, quota.ErrReservationShort) && !errors.Is(err, quota.ErrNoReservation) {
			return d, err
		}
	}
	// Known use is booked even beyond the ceiling, because it was billed.
	used := c.Observe && c.Manual
	return l.take(ctx, units, used, func() (quota.Decision, error) {
		return l.BudgetLedger.Charge(ctx, c)
	})
}

// draw draws the units of the reservation's bucket, and charges the units of other buckets. It
// returns ErrReservationShort if the ceiling denies the latter.
func (l *Drawing) draw(ctx context.Context, c quota.Charge, others map[string]int64) (
	quota.Decision, error) {
	if !l.admit(others) {
		return quota.Decision{}, quota.ErrReservationShort
	}
	c = l.budget.DrawOn(l.reservation, c)
	d, err := l.BudgetLedger.Charge(ctx, c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && !quota.IsAway(err) || !d.Allowed || d.Replayed {
		addTo(l.beyond, others, -1)
	}
	l.drawn[c.ID] = true
	return d, err
}

// Reserve sets aside units for a call of an unknown price.
func (l *Drawing) Reserve(ctx context.Context, r quota.Reserve) (quota.Decision, error) {
	if r.Credential != l.credential {
		return l.BudgetLedger.Reserve(ctx, r)
	}
	units := quota.UnlabelledUnits(quota.UnitsOf(r.Costs))
	d, err := l.take(ctx, units, false, func() (quota.Decision, error) {
		return l.BudgetLedger.Reserve(ctx, r)
	})
	if err == nil && d.Allowed && !d.Replayed {
		l.mu.Lock()
		l.open[d.Reservation] = units
		l.mu.Unlock()
	}
	return d, err
}

// take charges units that are not drawn. If the ceiling or a limit denies them, take gives back the
// run's reservation, which is meant for these requests, and retries.
func (l *Drawing) take(ctx context.Context, units map[string]int64, used bool,
	ask func() (quota.Decision, error)) (d quota.Decision, err error) {
	for {
		if !used && !l.admit(units) {
			if l.giveBack(ctx) == nil {
				continue
			}
			return l.deny(ctx, units)
		}
		if used {
			l.add(units, 1)
		}
		d, err = ask()
		// The charge may have been made although the ledger's response was lost.
		if err == nil && d.Allowed && !d.Replayed || quota.IsAway(err) {
			return d, err
		}
		l.add(units, -1)
		if err != nil || d.Allowed || l.giveBack(ctx) != nil {
			return d, err
		}
	}
}

// admit counts units if the ceiling allows them.
func (l *Drawing) admit(units map[string]int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.ceiling
	if n := c.count(units); c.Units > 0 && n > 0 &&
		c.count(l.held)+c.count(l.beyond)+n > c.Units {
		return false
	}
	addTo(l.beyond, units, 1)
	return true
}

// deny returns the ceiling's denial, with the units that the ceiling counts. It has no RetryAt,
// because waiting does not help.
func (l *Drawing) deny(ctx context.Context, units map[string]int64) (quota.Decision, error) {
	now, err := l.BudgetLedger.Time(ctx)
	if err != nil {
		now = time.Now()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.denied++
	left := max(0, l.ceiling.Units-l.ceiling.count(l.held)-l.ceiling.count(l.beyond))
	d := quota.Decision{At: now.UTC(), Units: map[string]int64{}, Limit: quota.RunMax,
		Remaining: map[string]int64{}}
	for bucket, n := range units {
		if l.ceiling.count(map[string]int64{bucket: n}) > 0 {
			d.Units[bucket], d.Remaining[bucket] = n, left
		}
	}
	return d, nil
}

// giveBack releases the rest of the reservation, also of one that has lapsed.
func (l *Drawing) giveBack(ctx context.Context) error {
	released, err := l.BudgetLedger.Release(ctx, quota.Release{Credential: l.credential,
		Reservation: l.reservation, Late: true})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	addTo(l.held, quota.UnlabelledUnits(released), -1)
	return nil
}

// Settle books the usage of a call in place of its hold.
func (l *Drawing) Settle(ctx context.Context, s quota.Settle) (quota.Decision, error) {
	d, err := l.BudgetLedger.Settle(ctx, s)
	if err == nil {
		l.settled(s.Reservation, quota.UnlabelledUnits(d.Units))
	}
	return d, err
}

// Release releases the hold of a call.
func (l *Drawing) Release(ctx context.Context, r quota.Release) (map[string]int64, error) {
	released, err := l.BudgetLedger.Release(ctx, r)
	if err == nil {
		l.settled(r.Reservation, nil)
	}
	return released, err
}

func (l *Drawing) settled(reservation string, units map[string]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held, ok := l.open[reservation]; ok {
		addTo(l.beyond, held, -1)
		addTo(l.beyond, units, 1)
		delete(l.open, reservation)
	}
}

// Cancel cancels a charge. Drawn units return to the reservation.
func (l *Drawing) Cancel(ctx context.Context, c quota.Charge, d quota.Decision) error {
	l.mu.Lock()
	drawn := l.drawn[c.ID]
	l.mu.Unlock()
	units := d.Units
	if drawn {
		c, units = l.budget.DrawOn(l.reservation, c), without(d.Units, l.bucket)
	}
	err := l.BudgetLedger.Cancel(ctx, c, d)
	if err == nil && c.Credential == l.credential {
		l.add(units, -1)
	}
	return err
}

// outcome returns the units of the requests, including units that any process drew from the
// reservation, and the number of requests that the ceiling denied.
func (l *Drawing) outcome() (spent map[string]int64, denied int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	spent = maps.Clone(l.held)
	addTo(spent, l.beyond, 1)
	return spent, l.denied
}

func (l *Drawing) add(units map[string]int64, sign int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	addTo(l.beyond, units, sign)
}

// addTo adds sign times units to sum.
func addTo(sum, units map[string]int64, sign int64) {
	for bucket, n := range units {
		sum[bucket] += sign * n
	}
}

func without(units map[string]int64, bucket string) map[string]int64 {
	others := maps.Clone(units)
	delete(others, bucket)
	return others
}
