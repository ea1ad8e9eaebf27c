package sqlitestore

import (
	"context"
	"errors"
	"fmt"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// unusable lists the errors that last until a person acts. Each message says what to do.
var unusable = []error{
	sqlite.ErrNotDatabase, sqlite.ErrReadOnly, sqlite.ErrNewer, sqlite.ErrDamaged, sqlite.ErrFull,
	sqlite.ErrGone,
}

// inWords converts an error of the file to ErrLedgerUnusable if a person must act, otherwise to
// ErrUnreachable. It only wraps an error of the caller's context.
func inWords(err error) error {
	switch {
	case err == nil, errors.Is(err, quota.ErrUnreachable), errors.Is(err, quota.ErrLedgerUnusable):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("ledger not called: %w", err)
	}
	for _, kind := range unusable {
		if errors.Is(err, kind) {
			return fmt.Errorf("%w: %w", quota.ErrLedgerUnusable, err)
		}
	}
	return fmt.Errorf("%w: %w", quota.ErrUnreachable, err)
}
