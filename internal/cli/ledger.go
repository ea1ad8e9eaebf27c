package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// OpenLedger opens the ledger of a URL. If the ledger cannot be reached or used, OpenLedger
// returns one whose methods fail with that error until it can. So a Budget can still allow what
// the configuration allows without a ledger.
func OpenLedger(ctx context.Context, ledgerURL string) (quota.Ledger, error) {
	l, err := ledger.Open(ctx, ledgerURL)
	if errors.Is(err, quota.ErrUnreachable) || errors.Is(err, quota.ErrLedgerUnusable) {
		return &awaited{url: ledgerURL, err: err, tried: time.Now()}, nil
	}
	return l, err
}

const retryAfter = time.Second

// awaited is a ledger that may not be open yet.
type awaited struct {
	url string

	mu    sync.Mutex
	l     quota.Ledger // nil until it is open
	err   error        // why it could not be opened
	tried time.Time
}

// get opens the ledger if necessary, and tries at most once per retryAfter.
func (a *awaited) get(ctx context.Context) (quota.Ledger, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.l == nil && time.Since(a.tried) >= retryAfter {
		a.l, a.err = ledger.Open(ctx, a.url)
		a.tried = time.Now()
	}
	if a.l == nil {
		return nil, a.err
	}
	return a.l, nil
}

func ask[T any](ctx context.Context, a *awaited, call func(quota.Ledger) (T, error)) (T, error) {
	s, err := a.get(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return call(s)
}

func (a *awaited) do(ctx context.Context, call func(quota.Ledger) error) error {
	_, err := ask(ctx, a, func(s quota.Ledger) (struct{}, error) { return struct{}{}, call(s) })
	return err
}

// Claim implements quota.Claims, as both ledgers do.
func (a *awaited) Claim(ctx context.Context, c quota.Claim) (quota.ClaimState, error) {
	return ask(ctx, a, func(s quota.Ledger) (quota.ClaimState, error) {
		return s.(quota.Claims).Claim(ctx, c)
	})
}

func (a *awaited) Finish(ctx context.Context, c quota.Claim, done bool) error {
	return a.do(ctx, func(s quota.Ledger) error { return s.(quota.Claims).Finish(ctx, c, done) })
}

func (a *awaited) Charge(ctx context.Context, c quota.Charge) (quota.Decision, error) {
	return ask(ctx, a, func(s quota.Ledger) (quota.Decision, error) { return s.Charge(ctx, c) })
}

func (a *awaited) Reserve(ctx context.Context, r quota.Reserve) (quota.Decision, error) {
	return ask(ctx, a, func(s quota.Ledger) (quota.Decision, error) { return s.Reserve(ctx, r) })
}

func (a *awaited) Settle(ctx context.Context, q quota.Settle) (quota.Decision, error) {
	return ask(ctx, a, func(s quota.Ledger) (quota.Decision, error) { return s.Settle(ctx, q) })
}

func (a *awaited) Extend(ctx context.Context, e quota.Extend) (time.Time, error) {
	return ask(ctx, a, func(s quota.Ledger) (time.Time, error) { return s.Extend(ctx, e) })
}

func (a *awaited) Release(ctx context.Context, credential, id string) (map[string]int64, error) {
	return ask(ctx, a, func(s quota.Ledger) (map[string]int64, error) {
		return s.Release(ctx, credential, id)
	})
}

func (a *awaited) Learn(ctx context.Context, l quota.Learn) (quota.Learned, error) {
	return ask(ctx, a, func(s quota.Ledger) (quota.Learned, error) { return s.Learn(ctx, l) })
}

func (a *awaited) Adjust(ctx context.Context, q quota.Adjust) (quota.Decision, error) {
	return ask(ctx, a, func(s quota.Ledger) (quota.Decision, error) { return s.Adjust(ctx, q) })
}

func (a *awaited) Takings(ctx context.Context, q quota.Query) ([]quota.Taking, error) {
	return ask(ctx, a, func(s quota.Ledger) ([]quota.Taking, error) { return s.Takings(ctx, q) })
}

func (a *awaited) BucketsOf(ctx context.Context, credential string) ([]quota.BucketTotal, error) {
	return ask(ctx, a, func(s quota.Ledger) ([]quota.BucketTotal, error) {
		return s.BucketsOf(ctx, credential)
	})
}

func (a *awaited) Cancel(ctx context.Context, c quota.Charge, d quota.Decision) error {
	return a.do(ctx, func(s quota.Ledger) error { return s.Cancel(ctx, c, d) })
}

func (a *awaited) Suspend(ctx context.Context, of quota.Suspension) error {
	return a.do(ctx, func(s quota.Ledger) error { return s.Suspend(ctx, of) })
}

func (a *awaited) Usage(ctx context.Context, credential string,
	limits []quota.Limit) (quota.Usage, error) {
	return ask(ctx, a, func(s quota.Ledger) (quota.Usage, error) {
		return s.Usage(ctx, credential, limits)
	})
}

func (a *awaited) Reservations(ctx context.Context, credential,
	bucket string) ([]quota.Reservation, error) {
	return ask(ctx, a, func(s quota.Ledger) ([]quota.Reservation, error) {
		return s.Reservations(ctx, credential, bucket)
	})
}

func (a *awaited) Entries(ctx context.Context, q quota.Query) ([]quota.Entry, error) {
	return ask(ctx, a, func(s quota.Ledger) ([]quota.Entry, error) { return s.Entries(ctx, q) })
}

func (a *awaited) Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error) {
	return ask(ctx, a, func(s quota.Ledger) ([]quota.Sum, error) { return s.Sums(ctx, q) })
}

func (a *awaited) Between(ctx context.Context, credential, bucket string,
	from, to time.Time) (int64, error) {
	return ask(ctx, a, func(s quota.Ledger) (int64, error) {
		return s.Between(ctx, credential, bucket, from, to)
	})
}

func (a *awaited) Mark(ctx context.Context, credential string, buckets []string) (string, error) {
	return ask(ctx, a,
		func(s quota.Ledger) (string, error) { return s.Mark(ctx, credential, buckets) })
}

// Denied drops the denial if the ledger cannot be opened.
func (a *awaited) Denied(credential string, d quota.Denial) {
	if l, err := a.get(context.Background()); err == nil {
		l.Denied(credential, d)
	}
}

func (a *awaited) Denials(ctx context.Context, credential string, since time.Time) (
	[]quota.Denial, error) {
	return ask(ctx, a, func(s quota.Ledger) ([]quota.Denial, error) {
		return s.Denials(ctx, credential, since)
	})
}

func (a *awaited) Time(ctx context.Context) (time.Time, error) {
	return ask(ctx, a, func(s quota.Ledger) (time.Time, error) { return s.Time(ctx) })
}

func (a *awaited) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.l == nil {
		return nil
	}
	return a.l.Close()
}
