package cli

import (
	"context"
	"errors"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// OpenLedger opens the ledger of a URL. One that cannot be reached or used is opened all the same, and answers every question
// with that error, so that a Budget can let pass what the configuration lets pass without it.
func OpenLedger(ctx context.Context, ledgerURL string) (quota.Ledger, error) {
	l, err := ledger.Open(ctx, ledgerURL)
	if errors.Is(err, quota.ErrUnreachable) || errors.Is(err, quota.ErrLedgerUnusable) {
		return absent{err}, nil
	}
	return l, err
}

// absent is a ledger that is not there.
type absent struct{ err error }

var _ quota.Ledger = absent{}

func (a absent) Charge(context.Context, quota.Charge) (quota.Decision, error) {
	return quota.Decision{}, a.err
}

func (a absent) Reserve(context.Context, quota.Reserve) (quota.Decision, error) {
	return quota.Decision{}, a.err
}

func (a absent) Commit(context.Context, quota.Commit) (quota.Decision, error) {
	return quota.Decision{}, a.err
}

func (a absent) Release(context.Context, string, string) (int64, error) { return 0, a.err }

func (a absent) Cancel(context.Context, quota.Charge, quota.Decision) error { return a.err }

func (a absent) Suspend(context.Context, string, string, time.Time) error { return a.err }

func (a absent) Usage(context.Context, string, []quota.Limit) (quota.Usage, error) {
	return quota.Usage{}, a.err
}

func (a absent) Reservations(context.Context, string, string) ([]quota.Reservation, error) {
	return nil, a.err
}

func (a absent) Entries(context.Context, quota.Query) ([]quota.Entry, error) { return nil, a.err }

func (a absent) Time(context.Context) (time.Time, error) { return time.Time{}, a.err }

func (a absent) Close() error { return nil }
