package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// OpenLedger opens the ledger of a URL. If the ledger cannot be reached or used, the returned
// ledger's methods fail with that error until it can, so that a Budget can still allow what the
// configuration allows without a ledger.
func OpenLedger(ctx context.Context, ledgerURL string) (*ledger.Ledger, error) {
	l, err := ledger.Open(ctx, ledgerURL)
	if errors.Is(err, quota.ErrUnreachable) || errors.Is(err, quota.ErrLedgerUnusable) {
		return ledger.New(&awaited{url: ledgerURL, err: err, tried: time.Now()}), nil
	}
	return l, err
}

// awaited is a ledger.Store that may not be open yet.
type awaited struct {
	url string

	mu    sync.Mutex
	store ledger.Store // nil until it is open
	err   error        // why the store could not be opened
	tried time.Time
}

// get returns the store. If it is not open yet, get tries to open it, at most once a second.
func (a *awaited) get(ctx context.Context) (ledger.Store, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store == nil && time.Since(a.tried) >= time.Second {
		a.tried = time.Now()
		var l *ledger.Ledger
		if l, a.err = ledger.Open(ctx, a.url); a.err == nil {
			a.store = l.Store
		}
	}
	if a.store == nil {
		return nil, a.err
	}
	return a.store, nil
}

// ask returns the result of a method of the store, once the store is open.
func ask[T any](ctx context.Context, a *awaited, method func(ledger.Store) (T, error)) (out T,
	err error) {
	s, err := a.get(ctx)
	if err != nil {
		return out, err
	}
	return method(s)
}

func (a *awaited) do(ctx context.Context, method func(ledger.Store) error) error {
	_, err := ask(ctx, a, func(s ledger.Store) (struct{}, error) { return struct{}{}, method(s) })
	return err
}

func (a *awaited) Entries(ctx context.Context, q quota.Query) ([]quota.LogEntry, error) {
	return ask(ctx, a, func(s ledger.Store) ([]quota.LogEntry, error) { return s.Entries(ctx, q) })
}

func (a *awaited) Update(ctx context.Context, scope quota.Scope,
	decide func(*quota.Account) (quota.Change, error)) error {
	return a.do(ctx, func(s ledger.Store) error { return s.Update(ctx, scope, decide) })
}

// TryCharge leaves the charge to Update if the store does not decide itself.
func (a *awaited) TryCharge(ctx context.Context, c quota.Charge) (
	d quota.Decision, decided bool, err error) {
	err = a.do(ctx, func(s ledger.Store) error {
		if s, ok := s.(ledger.Charger); ok {
			d, decided, err = s.TryCharge(ctx, c)
		}
		return err
	})
	return d, decided, err
}

func (a *awaited) View(ctx context.Context, scope quota.Scope,
	read func(*quota.Account) error) error {
	return a.do(ctx, func(s ledger.Store) error { return s.View(ctx, scope, read) })
}

func (a *awaited) Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error) {
	return ask(ctx, a, func(s ledger.Store) ([]quota.Sum, error) { return s.Sums(ctx, q) })
}

func (a *awaited) BucketsOf(ctx context.Context, credential string) ([]quota.BucketTotal, error) {
	return ask(ctx, a, func(s ledger.Store) ([]quota.BucketTotal, error) {
		return s.BucketsOf(ctx, credential)
	})
}

func (a *awaited) Check(ctx context.Context, credential, bucket string, repair bool) (
	[]quota.Finding, error) {
	return ask(ctx, a, func(s ledger.Store) ([]quota.Finding, error) {
		return s.Check(ctx, credential, bucket, repair)
	})
}

func (a *awaited) Mark(ctx context.Context, credential string, buckets []string) (string, error) {
	return ask(ctx, a, func(s ledger.Store) (string, error) {
		return s.Mark(ctx, credential, buckets)
	})
}

func (a *awaited) AddDenials(ctx context.Context, credential string, all []quota.Denial) error {
	return a.do(ctx, func(s ledger.Store) error { return s.AddDenials(ctx, credential, all) })
}

func (a *awaited) Denials(ctx context.Context, credential string, since time.Time) (
	[]quota.Denial, error) {
	return ask(ctx, a, func(s ledger.Store) ([]quota.Denial, error) {
		return s.Denials(ctx, credential, since)
	})
}

func (a *awaited) Time(ctx context.Context) (time.Time, error) {
	return ask(ctx, a, func(s ledger.Store) (time.Time, error) { return s.Time(ctx) })
}

func (a *awaited) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store == nil {
		return nil
	}
	return a.store.Close()
}
