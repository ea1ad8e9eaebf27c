package sqlitestore

import (
	"context"
	"errors"
	"fmt"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// unusable are the errors that no waiting mends; each says what a person can do.
var unusable = []error{
	sqlite.ErrNotDatabase, sqlite.ErrReadOnly, sqlite.ErrNewer, sqlite.ErrDamaged, sqlite.ErrFull,
	sqlite.ErrGone,
}

// inWords puts an error of the file into the words of the contract: the caller's own context comes
// back as it is, what needs a person is ErrLedgerUnusable, anything else ErrUnreachable.
func inWords(err error) error {
	switch {
	case err == nil, errors.Is(err, quota.ErrUnreachable), errors.Is(err, quota.ErrLedgerUnusable):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("ledger not asked: %w", err)
	}
	for _, kind := range unusable {
		if errors.Is(err, kind) {
			return fmt.Errorf("%w: %w", quota.ErrLedgerUnusable, err)
		}
	}
	return fmt.Errorf("%w: %w", quota.ErrUnreachable, err)
}
