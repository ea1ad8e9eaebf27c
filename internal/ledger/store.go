package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// Store stores the data of a ledger. It makes no decisions.
type Store interface {
	// Update calls decide with the data in scope, and writes the change that it returns, in one
	// atomic step. An error of decide is returned, and nothing is written. decide may be called
	// again.
	Update(ctx context.Context, scope quota.Scope,
		decide func(*quota.Account) (quota.Change, error)) error
	// View calls read with a consistent snapshot of the data in scope.
	View(ctx context.Context, scope quota.Scope, read func(*quota.Account) error) error
	// Scan lists the entries of one bucket, oldest first.
	Scan(ctx context.Context, q quota.Query) iter.Seq2[quota.Entry, error]
	// Notes lists the notes of units that were taken off entries, oldest first.
	Notes(ctx context.Context, q quota.Query) iter.Seq2[quota.Entry, error]
	// Sums adds up the entries of one bucket.
	Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error)
	// BucketsOf lists the buckets with any data.
	BucketsOf(ctx context.Context, credential string) ([]quota.BucketTotal, error)
	// Check compares a bucket's totals with its entries. With repair, it rewrites the totals from
	// the entries.
	Check(ctx context.Context, credential, bucket string, repair bool) ([]quota.Finding, error)
	// Mark returns a text that changes whenever anything in the buckets does.
	Mark(ctx context.Context, credential string, buckets []string) (string, error)
	// AddDenials adds to the stored denials.
	AddDenials(ctx context.Context, credential string, denials []quota.Denial) error
	// Denials lists the denials in the hours since a time, oldest first.
	Denials(ctx context.Context, credential string, since time.Time) ([]quota.Denial, error)
	// Time returns the store's clock.
	Time(ctx context.Context) (time.Time, error)
	Close() error
}

// Ledger is the log of charges: the rule of package quota, over a store. Each method that changes
// it is one atomic step, decided at the time of the ledger's own clock. Errors are
// quota.ErrUnreachable when the ledger did not respond, quota.ErrLedgerUnusable when a person must
// repair it first, quota.ErrMalformed for a request that its Check refuses, and otherwise as
// stated. quotatest is the contract.
type Ledger struct {
	Store
	quota.DenialCounter
	// Now is the clock of a ledger in a file; nil means time.Now.
	Now func() time.Time
	// Observe, if it is set before use, is called after each operation; see Operation.
	Observe func(Operation)
}

// Operation is a call of a method of a Ledger that has returned.
type Operation struct {
	Name       string // of the method: charge, reserve, settle, cancel, suspend, usage, …
	Took       time.Duration
	Err        error
	Credential string
	Labels     quota.Labels   // of a charge, a reservation or a settlement
	Decision   quota.Decision // of these; of cancel, the one that is cancelled
}

// done passes an operation to Observe. It is deferred, with the time at which the operation began.
func (l *Ledger) done(op Operation, began time.Time, d *quota.Decision, err *error) {
	if l.Observe == nil {
		return
	}
	if d != nil {
		op.Decision = *d
	}
	op.Took, op.Err = time.Since(began), *err
	l.Observe(op)
}

// New returns the ledger in a store.
func New(s Store) *Ledger {
	l := &Ledger{Store: s}
	l.Write = s.AddDenials
	return l
}

// Close writes the denials and closes the store.
func (l *Ledger) Close() error {
	l.Flush(time.Second)
	return l.Store.Close()
}

var (
	_ quota.BudgetLedger = (*Ledger)(nil)
	_ quota.Claims       = (*Ledger)(nil)
)

// Charger is a store that decides some charges itself, as the rule would.
type Charger interface {
	// TryCharge returns false if it leaves the charge to Update.
	TryCharge(ctx context.Context, c quota.Charge) (d quota.Decision, decided bool, err error)
}

// update repeats the step until all holds that lapse together are written and all entries for a new
// rate are read, because each step handles a bounded number of entries. The store may decide after
// the caller has returned, so the result is a copy.
func update[T any](ctx context.Context, l *Ledger, scope quota.Scope,
	decide func(*quota.Account) (T, quota.Change, error)) (result T, err error) {
	read := make(quota.Reading)
	for {
		if err := ctx.Err(); err != nil {
			return result, fmt.Errorf("ledger not asked: %w", err)
		}
		var last T
		var more bool
		err := l.Update(ctx, scope, func(a *quota.Account) (ch quota.Change, err error) {
			a.Bounded(read)
			last, ch, err = decide(a)
			more = ch.More && err == nil || errors.Is(err, quota.ErrPartial)
			if more && err != nil {
				return quota.Change{}, nil
			}
			return ch, err
		})
		if err != nil || !more {
			if err == nil {
				result = last
			}
			return result, err
		}
	}
}

// nothing is the result of a step without one.
type nothing = struct{}

// lapsed writes the entries of holds in a bucket that have lapsed, before the log is read.
func (l *Ledger) lapsed(ctx context.Context, credential, bucket string) error {
	scope := quota.Scope{Credential: credential, Buckets: []string{bucket}}
	var pending bool
	err := l.View(ctx, scope, func(a *quota.Account) error {
		ch, err := a.Lapse()
		pending = ch.More
		return err
	})
	if err != nil || !pending {
		return err
	}
	_, err = update(ctx, l, scope, func(a *quota.Account) (_ nothing, ch quota.Change, err error) {
		ch, err = a.Lapse()
		return nothing{}, ch, err
	})
	return err
}

func bucketsOf(costs []quota.Cost) []string {
	names := make([]string, len(costs))
	for i, c := range costs {
		names[i] = c.Bucket
	}
	return names
}

// Charge takes c.Costs, all or nothing, or returns when they would fit. A denial changes nothing.
// Errors: CostExceedsLimitError (with a Decision that says Never), ErrNoBucket, ErrKeyReused,
// ErrNoReservation, ErrReservationShort.
func (l *Ledger) Charge(ctx context.Context, c quota.Charge) (d quota.Decision, err error) {
	op := Operation{Name: "charge", Credential: c.Credential, Labels: c.Labels}
	defer l.done(op, time.Now(), &d, &err)
	if err := c.Check(); err != nil {
		return quota.Refused(c.Costs, err)
	}
	if s, ok := l.Store.(Charger); ok {
		if d, decided, err := s.TryCharge(ctx, c); decided || err != nil {
			return d, err
		}
	}
	scope := quota.Scope{Credential: c.Credential, Buckets: bucketsOf(c.Costs),
		Answer: quota.KeyScope(c.Key), Limits: c.Limits}
	d, err = update(ctx, l, scope, func(a *quota.Account) (quota.Decision, quota.Change, error) {
		return a.Charge(c)
	})
	if err != nil {
		return quota.Refused(c.Costs, err)
	}
	return d, nil
}

// Reserve sets r.Costs aside, all or nothing, until r.TTL has passed, or returns when they would
// fit. What happens then is r.Lapse. Errors as for Charge.
func (l *Ledger) Reserve(ctx context.Context, r quota.Reserve) (d quota.Decision, err error) {
	op := Operation{Name: "reserve", Credential: r.Credential, Labels: r.Labels}
	defer l.done(op, time.Now(), &d, &err)
	if err := r.Check(); err != nil {
		return quota.Refused(r.Costs, err)
	}
	scope := quota.Scope{Credential: r.Credential, Buckets: bucketsOf(r.Costs),
		Answer: quota.KeyScope(r.Key), Limits: r.Limits}
	d, err = update(ctx, l, scope, func(a *quota.Account) (quota.Decision, quota.Change, error) {
		return a.Hold(r)
	})
	if err != nil {
		return quota.Refused(r.Costs, err)
	}
	return d, nil
}

// scopeOf returns the scope of a reservation.
func scopeOf(credential, reservation string) (quota.Scope, error) {
	_, buckets, err := quota.ParseReservation(reservation)
	return quota.Scope{Credential: credential, Buckets: buckets,
		Answer: quota.SettledScope(reservation), Reservation: reservation}, err
}

// Settle ends a reservation: in each bucket it writes an entry of what was used, now, and gives the
// rest back. It checks no limit, since the upstream has billed what was used beyond the
// reservation. Of a reservation that lapsed into entries (LapseCharge) it takes off what was not
// used, and appends what was used beyond. A second settlement gets the answer of the first. Errors:
// ErrNoReservation, ErrReservationShort with s.Within, ErrKeyReused when it was settled with other
// costs, ErrSettledLate when too many entries came after those of the lapse.
func (l *Ledger) Settle(ctx context.Context, s quota.Settle) (d quota.Decision, err error) {
	op := Operation{Name: "settle", Credential: s.Credential, Labels: s.Labels}
	defer l.done(op, time.Now(), &d, &err)
	if err := s.Check(); err != nil {
		return d, err
	}
	scope, err := scopeOf(s.Credential, s.Reservation)
	if err != nil {
		return d, err
	}
	scope.Limits = s.Limits
	return update(ctx, l, scope, func(a *quota.Account) (quota.Decision, quota.Change, error) {
		return a.Settle(s)
	})
}

// Extend extends an open reservation to e.TTL from now, in all its buckets, and returns its new
// expiry. It never shortens one. Errors: ErrNoReservation.
func (l *Ledger) Extend(ctx context.Context, e quota.Extend) (until time.Time, err error) {
	if err := e.Check(); err != nil {
		return until, err
	}
	scope, err := scopeOf(e.Credential, e.Reservation)
	if err != nil {
		return until, err
	}
	return update(ctx, l, scope, func(a *quota.Account) (time.Time, quota.Change, error) {
		return a.Extend(e)
	})
}

// Release releases the rest of a reservation and returns its units by bucket. Errors:
// ErrNoReservation.
func (l *Ledger) Release(ctx context.Context, credential, reservation string) (
	released map[string]int64, err error) {
	return l.release(ctx, credential, reservation, false)
}

// GiveBack does what Release does, and removes the entries of a reservation that has lapsed into a
// charge, for a caller that knows that the rest was not used. Errors: ErrNoReservation if it was
// released or settled, ErrSettledLate.
func (l *Ledger) GiveBack(ctx context.Context, credential, reservation string) (
	released map[string]int64, err error) {
	return l.release(ctx, credential, reservation, true)
}

func (l *Ledger) release(ctx context.Context, credential, reservation string, late bool) (
	released map[string]int64, err error) {
	scope, err := scopeOf(credential, reservation)
	if err != nil {
		return nil, err
	}
	return update(ctx, l, scope, func(a *quota.Account) (map[string]int64, quota.Change, error) {
		return a.Release(reservation, late)
	})
}

// Learn records the units that other programs used in the window of one limit, as the upstream
// reports them, and moves the end of an anchored window. It changes no other limit of the bucket,
// and never frees units, except at the end of such a window.
func (l *Ledger) Learn(ctx context.Context, q quota.Learn) (learned quota.Learned, err error) {
	if err := q.Check(); err != nil {
		return learned, err
	}
	scope := quota.Scope{Credential: q.Credential, Buckets: []string{q.Limit.Bucket}}
	return update(ctx, l, scope, func(a *quota.Account) (quota.Learned, quota.Change, error) {
		return a.Learn(q)
	})
}

// Cancel removes the charge c that d allowed from every bucket, along with its idempotency key.
// Errors: ErrNoEntry.
func (l *Ledger) Cancel(ctx context.Context, c quota.Charge, d quota.Decision) (err error) {
	op := Operation{Name: "cancel", Credential: c.Credential, Labels: c.Labels}
	defer l.done(op, time.Now(), &d, &err)
	scope := quota.Scope{Credential: c.Credential, Buckets: bucketsOf(c.Costs)}
	_, err = update(ctx, l, scope, func(a *quota.Account) (_ nothing, ch quota.Change, err error) {
		ch, err = a.Cancel(c, d.At.UnixMicro())
		return nothing{}, ch, err
	})
	return err
}

// Adjust corrects the log: it adds an entry, or takes units off the newest entries and records a
// note. It is atomic and checks no limit. Errors: ErrSpanChanged, ErrSpanShort, ErrKeyReused, and
// ErrNoEntry when too many entries came after those that it would change.
func (l *Ledger) Adjust(ctx context.Context, x quota.Adjust) (d quota.Decision, err error) {
	if err := x.Check(); err != nil {
		return d, err
	}
	scope := quota.Scope{Credential: x.Credential, Buckets: []string{x.Bucket},
		Answer: quota.KeyScope(x.Key)}
	return update(ctx, l, scope, func(a *quota.Account) (quota.Decision, quota.Change, error) {
		return a.Adjust(x)
	})
}

// Suspend denies every charge on the bucket until the given time; a zero time resumes it.
func (l *Ledger) Suspend(ctx context.Context, suspension quota.Suspension) (err error) {
	defer l.done(Operation{Name: "suspend", Credential: suspension.Credential}, time.Now(), nil, &err)
	if err := suspension.Check(); err != nil {
		return err
	}
	scope := quota.Scope{Credential: suspension.Credential, Buckets: []string{suspension.Bucket}}
	_, err = update(ctx, l, scope, func(a *quota.Account) (nothing, quota.Change, error) {
		return nothing{}, a.Suspend(suspension), nil
	})
	return err
}

// Usage reports on the buckets of limits, in their order, as one consistent picture.
func (l *Ledger) Usage(ctx context.Context, credential string, limits []quota.Limit) (
	usage quota.Usage, err error) {
	defer l.done(Operation{Name: "usage", Credential: credential}, time.Now(), nil, &err)
	scope := quota.Scope{Credential: credential, Limits: limits}
	for _, limit := range limits {
		if !slices.Contains(scope.Buckets, limit.Bucket) {
			scope.Buckets = append(scope.Buckets, limit.Bucket)
		}
	}
	err = l.View(ctx, scope, func(a *quota.Account) (err error) {
		usage, err = a.Usage(limits)
		return err
	})
	return usage, err
}

// Reservations lists what is set aside in the bucket and not yet expired, oldest first.
func (l *Ledger) Reservations(ctx context.Context, credential, bucket string) (
	list []quota.Reservation, err error) {
	scope := quota.Scope{Credential: credential, Buckets: []string{bucket}}
	err = l.View(ctx, scope, func(a *quota.Account) (err error) {
		list, err = a.Reservations()
		return err
	})
	return list, err
}

// Entries lists the log of one bucket, oldest first.
func (l *Ledger) Entries(ctx context.Context, q quota.Query) (entries []quota.Entry, err error) {
	if err := l.lapsed(ctx, q.Credential, q.Bucket); err != nil {
		return nil, err
	}
	for e, err := range l.Scan(ctx, q) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Takings lists what Adjust took off the entries of one bucket, oldest first.
func (l *Ledger) Takings(ctx context.Context, q quota.Query) (takings []quota.Taking, err error) {
	for e, err := range l.Notes(ctx, q) {
		if err != nil {
			return nil, err
		}
		takings = append(takings, quota.Taking{At: e.At, ID: e.ID, Bucket: q.Bucket,
			Units: e.Units, Labels: e.Labels})
	}
	return takings, nil
}

// Sums adds up the log of one bucket by time and labels, oldest first. The result equals AddUp of
// the entries. The time it takes does not depend on the length of the log.
func (l *Ledger) Sums(ctx context.Context, q quota.SumQuery) (sums []quota.Sum, err error) {
	defer l.done(Operation{Name: "sums", Credential: q.Credential}, time.Now(), nil, &err)
	if err := l.lapsed(ctx, q.Credential, q.Bucket); err != nil {
		return nil, err
	}
	return l.Store.Sums(ctx, q)
}

// Between returns the units of the entries of one bucket stamped after from and not after to. The
// time it takes does not depend on their number.
func (l *Ledger) Between(ctx context.Context, credential, bucket string, from, to time.Time) (
	units int64, err error) {
	defer l.done(Operation{Name: "between", Credential: credential}, time.Now(), nil, &err)
	scope := quota.Scope{Credential: credential, Buckets: []string{bucket}}
	err = l.View(ctx, scope, func(a *quota.Account) (err error) {
		units, err = a.Between(from.UnixMicro(), to.UnixMicro())
		return err
	})
	return units, err
}

// AllBuckets returns the names of all buckets with data, including buckets missing from the store's
// list. It is slower than BucketsOf.
func (l *Ledger) AllBuckets(ctx context.Context, credential string) ([]string, error) {
	buckets, err := l.BucketsOf(ctx, credential)
	names := quota.BucketNames(buckets)
	s, ok := l.Store.(interface {
		Unlisted(ctx context.Context, credential string) ([]string, error)
	})
	if err != nil || !ok {
		return names, err
	}
	unlisted, err := s.Unlisted(ctx, credential)
	return append(names, unlisted...), err
}

// Claim leases a piece of work: see quota.Claims.
func (l *Ledger) Claim(ctx context.Context, c quota.Claim) (state quota.ClaimState, err error) {
	defer l.done(Operation{Name: "claim", Credential: c.Credential}, time.Now(), nil, &err)
	if err := c.Check(); err != nil {
		return 0, err
	}
	scope := quota.Scope{Credential: c.Credential, Answer: quota.ClaimScope(c.Name)}
	return update(ctx, l, scope, func(a *quota.Account) (quota.ClaimState, quota.Change, error) {
		state, ch := a.Claim(c)
		return state, ch, nil
	})
}

// Finish ends a claim: see quota.Claims.
func (l *Ledger) Finish(ctx context.Context, c quota.Claim, done bool) (err error) {
	defer l.done(Operation{Name: "finish", Credential: c.Credential}, time.Now(), nil, &err)
	if err := c.Check(); err != nil {
		return err
	}
	scope := quota.Scope{Credential: c.Credential, Answer: quota.ClaimScope(c.Name)}
	_, err = update(ctx, l, scope, func(a *quota.Account) (_ nothing, ch quota.Change, err error) {
		ch, err = a.Finish(c, done)
		return nothing{}, ch, err
	})
	return err
}
