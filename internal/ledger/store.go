package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// Store stores the data of a ledger. It makes no decisions.
type Store interface {
	// Update calls decide with the data in scope, and writes the change that it returns, in one
	// atomic step. If decide returns an error, Update returns it and writes nothing. Update may
	// call decide again.
	Update(ctx context.Context, scope quota.Scope,
		decide func(*quota.Account) (quota.Change, error)) error
	// View calls read with a consistent snapshot of the data in scope.
	View(ctx context.Context, scope quota.Scope, read func(*quota.Account) error) error
	// Entries returns the entries or notes of one bucket that a query picks, oldest first.
	Entries(ctx context.Context, q quota.Query) ([]quota.LogEntry, error)
	// Sums adds up the entries of one bucket.
	Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error)
	// BucketsOf lists the buckets with any data.
	BucketsOf(ctx context.Context, credential string) ([]quota.BucketTotal, error)
	// Check compares a bucket's totals with its entries. With repair, it rewrites the totals from
	// the entries.
	Check(ctx context.Context, credential, bucket string, repair bool) ([]quota.Finding, error)
	// Mark returns a text that changes whenever anything in the buckets does.
	Mark(ctx context.Context, credential string, buckets []string) (string, error)
	// AddDenials adds denials to the stored ones.
	AddDenials(ctx context.Context, credential string, denials []quota.Denial) error
	// Denials lists the denials in the hours since a time, oldest first.
	Denials(ctx context.Context, credential string, since time.Time) ([]quota.Denial, error)
	// Time returns the store's clock.
	Time(ctx context.Context) (time.Time, error)
	Close() error
}

// Ledger is the log of charges: the rule of package quota, over a store. Each method that changes
// it is one atomic step, decided at the time of the ledger's own clock. Errors are
// quota.ErrUnreachable if the ledger did not respond, quota.ErrLedgerUnusable if a person must
// repair it first, quota.ErrMalformed for a request that its Check refuses, and as documented.
// quotatest is the contract.
type Ledger struct {
	Store
	quota.DenialCounter
	// Now is the clock of a ledger in a file; nil means time.Now.
	Now func() time.Time
	// Observe, if it is set before use, is called after each operation; see Operation.
	Observe func(Operation)
}

// Operation is a completed call of a method of a Ledger.
type Operation struct {
	Name       string // method: charge, reserve, settle, cancel, suspend, usage, …
	Took       time.Duration
	Err        error
	Credential string
	Labels     quota.Labels   // of a charge, a reservation or a settlement
	Decision   quota.Decision // of these; of cancel, the one that is cancelled
}

// done passes an operation that began at a time to Observe. Callers defer it.
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

// Charger is a store that decides some charges itself, by the same rule.
type Charger interface {
	// TryCharge returns false if it leaves the charge to Update.
	TryCharge(ctx context.Context, c quota.Charge) (d quota.Decision, decided bool, err error)
}

// step decides and writes the change. It repeats that until all lapsed holds are written and all
// entries for a new rate are read, because each step handles a bounded number of entries. The
// result is a copy, because the store may decide after the caller has returned.
func step[T any](ctx context.Context, l *Ledger, scope quota.Scope,
	decide func(*quota.Account) (T, error)) (result T, err error) {
	read := make(quota.Reading)
	for {
		if err := ctx.Err(); err != nil {
			return result, fmt.Errorf("ledger not called: %w", err)
		}
		var last T
		var more bool
		err := l.Update(ctx, scope, func(a *quota.Account) (_ quota.Change, err error) {
			a.Bounded(read)
			last, err = decide(a)
			if more = errors.Is(err, quota.ErrMore); more {
				err = nil
			}
			return a.Change(), err
		})
		if err != nil {
			return result, err
		}
		if !more {
			return last, nil
		}
	}
}

// ask checks a request, decides on it, and writes the change.
func ask[Q quota.Request, T any](ctx context.Context, l *Ledger, request Q,
	decide func(*quota.Account, Q) (T, error)) (result T, err error) {
	if err := request.Check(); err != nil {
		return result, err
	}
	return step(ctx, l, request.Scope(), func(a *quota.Account) (T, error) {
		return decide(a, request)
	})
}

// only adapts a decision without a result other than the error.
func only(decide func(*quota.Account) error) func(*quota.Account) (struct{}, error) {
	return func(a *quota.Account) (struct{}, error) { return struct{}{}, decide(a) }
}

// lapsed writes the entries of lapsed holds in a bucket, before the log is read.
func (l *Ledger) lapsed(ctx context.Context, credential, bucket string) error {
	scope := quota.Scope{Credential: credential, Buckets: []string{bucket}}
	var pending bool
	err := l.View(ctx, scope, func(a *quota.Account) error {
		err := a.Lapse()
		if pending = errors.Is(err, quota.ErrMore); pending {
			return nil
		}
		return err
	})
	if err != nil || !pending {
		return err
	}
	_, err = step(ctx, l, scope, only((*quota.Account).Lapse))
	return err
}

// Charge takes c.Costs, all or nothing, or returns when they would fit. A denial changes nothing.
// Errors: CostExceedsLimitError (with Decision.Never), ErrNoBucket, ErrKeyReused, ErrNoReservation,
// ErrReservationShort.
func (l *Ledger) Charge(ctx context.Context, c quota.Charge) (d quota.Decision, err error) {
	op := Operation{Name: "charge", Credential: c.Credential, Labels: c.Labels}
	defer l.done(op, time.Now(), &d, &err)
	if s, ok := l.Store.(Charger); ok && c.Check() == nil {
		if d, decided, err := s.TryCharge(ctx, c); decided || err != nil {
			return d, err
		}
	}
	if d, err = ask(ctx, l, c, (*quota.Account).Charge); err != nil {
		return quota.Refused(c.Costs, err)
	}
	return d, nil
}

// Reserve sets r.Costs aside, all or nothing, or returns when they would fit. After r.TTL they
// lapse as r.Lapse requires. Errors as for Charge.
func (l *Ledger) Reserve(ctx context.Context, r quota.Reserve) (d quota.Decision, err error) {
	op := Operation{Name: "reserve", Credential: r.Credential, Labels: r.Labels}
	defer l.done(op, time.Now(), &d, &err)
	if d, err = ask(ctx, l, r, (*quota.Account).Hold); err != nil {
		return quota.Refused(r.Costs, err)
	}
	return d, nil
}

// Settle ends a reservation: in each bucket it writes an entry of the units used, stamped now, and
// gives the rest back. It checks no limit, because the upstream has billed even units beyond the
// reservation. If the reservation has lapsed into entries (LapseCharge), Settle takes unused units
// off them, or appends the units used beyond them. A second settlement gets the answer to the
// first. Errors: ErrNoReservation, ErrReservationShort with s.Within, ErrKeyReused if it was
// settled with other costs, ErrSettledLate if too many entries follow those of the lapse.
func (l *Ledger) Settle(ctx context.Context, s quota.Settle) (d quota.Decision, err error) {
	op := Operation{Name: "settle", Credential: s.Credential, Labels: s.Labels}
	defer l.done(op, time.Now(), &d, &err)
	return ask(ctx, l, s, (*quota.Account).Settle)
}

// Extend extends an open reservation to e.TTL from now, in all its buckets, and returns its new
// expiry. It never shortens one. Errors: ErrNoReservation.
func (l *Ledger) Extend(ctx context.Context, e quota.Extend) (until time.Time, err error) {
	return ask(ctx, l, e, (*quota.Account).Extend)
}

// Release releases the rest of a reservation and returns its units by bucket. Errors:
// ErrNoReservation if it was released, settled or, unless r.Late, has lapsed; ErrSettledLate.
func (l *Ledger) Release(ctx context.Context, r quota.Release) (
	released map[string]int64, err error) {
	return ask(ctx, l, r, (*quota.Account).Release)
}

// Learn records the units that other programs used in the window of one limit, as the upstream
// reports them, and moves the end of an anchored window. It changes no other limit of the bucket,
// and never frees units, except at the end of such a window.
func (l *Ledger) Learn(ctx context.Context, q quota.Learn) (learned quota.Learned, err error) {
	return ask(ctx, l, q, (*quota.Account).Learn)
}

// Cancel removes the charge c that d allowed from every bucket, and its idempotency key.
// Errors: ErrNoEntry.
func (l *Ledger) Cancel(ctx context.Context, c quota.Charge, d quota.Decision) (err error) {
	op := Operation{Name: "cancel", Credential: c.Credential, Labels: c.Labels}
	defer l.done(op, time.Now(), &d, &err)
	scope := c.Scope()
	scope.Limits = nil // a cancellation reads no window
	_, err = step(ctx, l, scope, only(func(a *quota.Account) error {
		return a.Cancel(c, d.At.UnixMicro())
	}))
	return err
}

// Adjust corrects the log: it adds an entry, or takes units off the newest entries and records a
// note. It checks no limit. Errors: ErrSpanChanged, ErrSpanShort, ErrKeyReused, and ErrNoEntry if
// too many entries follow those that it would change.
func (l *Ledger) Adjust(ctx context.Context, x quota.Adjust) (d quota.Decision, err error) {
	return ask(ctx, l, x, (*quota.Account).Adjust)
}

// Suspend denies every charge on the bucket until the given time; a zero time resumes it.
func (l *Ledger) Suspend(ctx context.Context, s quota.Suspension) (err error) {
	defer l.done(Operation{Name: "suspend", Credential: s.Credential}, time.Now(), nil, &err)
	_, err = ask(ctx, l, s, func(a *quota.Account, s quota.Suspension) (struct{}, error) {
		return struct{}{}, a.Suspend(s)
	})
	return err
}

// Usage returns the usage of the buckets of limits, in that order, at one moment.
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

// Reservations returns the unexpired reservations of the bucket, oldest first.
func (l *Ledger) Reservations(ctx context.Context, credential, bucket string) (
	list []quota.Reservation, err error) {
	scope := quota.Scope{Credential: credential, Buckets: []string{bucket}}
	err = l.View(ctx, scope, func(a *quota.Account) (err error) {
		list, err = a.Reservations()
		return err
	})
	return list, err
}

// Entries returns the log of one bucket, oldest first.
func (l *Ledger) Entries(ctx context.Context, q quota.Query) ([]quota.Entry, error) {
	if err := l.lapsed(ctx, q.Credential, q.Bucket); err != nil {
		return nil, err
	}
	stored, err := l.Store.Entries(ctx, q)
	if err != nil {
		return nil, err
	}
	return q.Entries(stored)
}

// Takings returns the units that Adjust took off the entries of one bucket, oldest first. Units are
// positive, and Total is 0. At is the end of the corrected span, or the time of the correction if
// that was earlier.
func (l *Ledger) Takings(ctx context.Context, q quota.Query) ([]quota.Entry, error) {
	q.Notes = true
	stored, err := l.Store.Entries(ctx, q)
	if err != nil {
		return nil, err
	}
	return q.Entries(stored)
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
	return ask(ctx, l, c, (*quota.Account).Claim)
}

// Finish ends a claim: see quota.Claims.
func (l *Ledger) Finish(ctx context.Context, c quota.Claim, done bool) (err error) {
	defer l.done(Operation{Name: "finish", Credential: c.Credential}, time.Now(), nil, &err)
	_, err = ask(ctx, l, c, func(a *quota.Account, c quota.Claim) (struct{}, error) {
		return struct{}{}, a.Finish(c, done)
	})
	return err
}
