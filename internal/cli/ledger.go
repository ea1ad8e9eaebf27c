package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// OpenLedger opens the ledger of a URL. One that cannot be reached or used is opened all the same:
// it answers every question with that error, so that a Budget can let pass what the configuration
// lets pass without it, and is there as soon as it can be.
func OpenLedger(ctx context.Context, ledgerURL string) (quota.Ledger, error) {
	l, err := ledger.Open(ctx, ledgerURL)
	if errors.Is(err, quota.ErrUnreachable) || errors.Is(err, quota.ErrLedgerUnusable) {
		return &awaited{url: ledgerURL, err: err, tried: time.Now()}, nil
	}
	return l, err
}

// tryAgain is how long after one attempt to open the ledger the next is made.
const tryAgain = time.Second

// awaited is a ledger that was not there when it was opened.
type awaited struct {
	url string

	mu    sync.Mutex
	l     quota.Ledger // nil until it could be opened
	err   error        // why not
	tried time.Time
}

var (
	_ quota.Ledger  = (*awaited)(nil)
	_ quota.Claims  = (*awaited)(nil)
	_ quota.Checker = (*awaited)(nil)
)

// get is the ledger, if it is there by now.
func (a *awaited) get(ctx context.Context) (quota.Ledger, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.l != nil || time.Since(a.tried) < tryAgain {
		return a.l, a.err
	}
	a.l, a.err = ledger.Open(ctx, a.url)
	a.tried = time.Now()
	return a.l, a.err
}

// ask asks the ledger, if it is there by now.
func ask[T any](ctx context.Context, a *awaited,
	question func(quota.Ledger) (T, error)) (T, error) {
	l, err := a.get(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return question(l)
}

// tell is ask for what answers with no more than an error.
func tell(ctx context.Context, a *awaited, what func(quota.Ledger) error) error {
	_, err := ask(ctx, a, func(l quota.Ledger) (struct{}, error) { return struct{}{}, what(l) })
	return err
}

func (a *awaited) Charge(ctx context.Context, c quota.Charge) (quota.Decision, error) {
	return ask(ctx, a, func(l quota.Ledger) (quota.Decision, error) { return l.Charge(ctx, c) })
}

func (a *awaited) Reserve(ctx context.Context, r quota.Reserve) (quota.Decision, error) {
	return ask(ctx, a, func(l quota.Ledger) (quota.Decision, error) { return l.Reserve(ctx, r) })
}

func (a *awaited) Commit(ctx context.Context, c quota.Commit) (quota.Decision, error) {
	return ask(ctx, a, func(l quota.Ledger) (quota.Decision, error) { return l.Commit(ctx, c) })
}

func (a *awaited) Release(ctx context.Context, credential, reservation string) (int64, error) {
	return ask(ctx, a, func(l quota.Ledger) (int64,
		error) {
		return l.Release(ctx, credential, reservation)
	})
}

func (a *awaited) Cancel(ctx context.Context, c quota.Charge, d quota.Decision) error {
	return tell(ctx, a, func(l quota.Ledger) error { return l.Cancel(ctx, c, d) })
}

func (a *awaited) Suspend(ctx context.Context, credential, bucket string, until time.Time) error {
	return tell(ctx, a, func(l quota.Ledger) error {
		return l.Suspend(ctx, credential, bucket,
			until)
	})
}

func (a *awaited) Usage(ctx context.Context, credential string,
	limits []quota.Limit) (quota.Usage, error) {
	return ask(ctx, a, func(l quota.Ledger) (quota.Usage,
		error) {
		return l.Usage(ctx, credential, limits)
	})
}

func (a *awaited) Reservations(ctx context.Context, credential,
	bucket string) ([]quota.Reservation, error) {
	return ask(ctx, a, func(l quota.Ledger) ([]quota.Reservation,
		error) {
		return l.Reservations(ctx, credential, bucket)
	})
}

func (a *awaited) Entries(ctx context.Context, q quota.Query) ([]quota.Entry, error) {
	return ask(ctx, a, func(l quota.Ledger) ([]quota.Entry, error) { return l.Entries(ctx, q) })
}

func (a *awaited) Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error) {
	return ask(ctx, a, func(l quota.Ledger) ([]quota.Sum, error) { return l.Sums(ctx, q) })
}

func (a *awaited) Between(
	ctx context.Context,
	credential, bucket string,
	from, to time.Time,
) (int64, error) {
	return ask(ctx, a, func(l quota.Ledger) (int64, error) {
		return l.Between(ctx, credential, bucket, from, to)
	})
}

func (a *awaited) Time(ctx context.Context) (time.Time, error) {
	return ask(ctx, a, func(l quota.Ledger) (time.Time, error) { return l.Time(ctx) })
}

func (a *awaited) Claim(ctx context.Context, c quota.Claim) (quota.ClaimState, error) {
	return ask(ctx, a, func(l quota.Ledger) (quota.ClaimState,
		error) {
		return l.(quota.Claims).Claim(ctx, c)
	})
}

func (a *awaited) Finish(ctx context.Context, c quota.Claim, done bool) error {
	return tell(ctx, a, func(l quota.Ledger) error { return l.(quota.Claims).Finish(ctx, c, done) })
}

func (a *awaited) BucketsOf(ctx context.Context, credential string) ([]string, error) {
	return ask(ctx, a, func(l quota.Ledger) ([]string,
		error) {
		return l.(quota.Checker).BucketsOf(ctx, credential)
	})
}

func (a *awaited) CheckBucket(ctx context.Context, credential, bucket string,
	repair bool) ([]quota.Finding, error) {
	return ask(ctx, a, func(l quota.Ledger) ([]quota.Finding, error) {
		return l.(quota.Checker).CheckBucket(ctx, credential, bucket, repair)
	})
}

func (a *awaited) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.l == nil {
		return nil
	}
	return a.l.Close()
}
