// Package ledger opens the ledger that a URL names.
package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/ledger/redisstore"
	"quotabudget/internal/ledger/sqlitestore"
	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// Open opens the ledger of a URL: sqlite:///path/ledger.db, or one of redisstore.Schemes. Errors:
// quota.ErrMalformed for a URL of another form, quota.ErrUnreachable, quota.ErrLedgerUnusable.
func Open(ctx context.Context, ledgerURL string) (*Ledger, error) {
	if err := CheckURL(ledgerURL); err != nil {
		return nil, err
	}
	if scheme(ledgerURL) == "sqlite" {
		path, err := sqlite.ParseURL(ledgerURL)
		if err != nil {
			return nil, err
		}
		return OpenFile(ctx, path)
	}
	store, err := redisstore.Open(ctx, ledgerURL)
	if err != nil {
		return nil, err
	}
	return New(store), nil
}

// OpenFile opens the ledger in the SQLite file at path: see sqlitestore.Open.
func OpenFile(ctx context.Context, path string) (*Ledger, error) {
	store, err := sqlitestore.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	l := New(store)
	store.Now = func() time.Time {
		if l.Now != nil {
			return l.Now()
		}
		return time.Now()
	}
	return l, nil
}

// CheckURL checks a ledger's URL without opening it. Errors do not repeat the URL, which may
// contain a password.
func CheckURL(ledgerURL string) error {
	switch s := scheme(ledgerURL); {
	case s == "sqlite":
		if _, err := sqlite.ParseURL(ledgerURL); err != nil {
			return fmt.Errorf("%w: %w", quota.ErrMalformed, err)
		}
		return nil
	case slices.Contains(redisstore.Schemes, s) && strings.HasPrefix(ledgerURL, s+"://"):
		return redisstore.CheckURL(ledgerURL)
	}
	return fmt.Errorf("%w: the ledger's URL: write sqlite:///path/ledger.db, "+
		"redis://host:6379/0, redis+sentinel://host:26379/master or "+
		"redis+cluster://host:6379,host:6379", quota.ErrMalformed)
}

func scheme(ledgerURL string) string {
	s, _, _ := strings.Cut(ledgerURL, ":")
	return s
}
