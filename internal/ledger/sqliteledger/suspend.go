package sqliteledger

import (
	"context"
	"fmt"
	"time"

	"quotabudget/internal/quota"
)

// Suspend implements quota.Ledger.
func (l *Ledger) Suspend(ctx context.Context, credential, name string, until time.Time) error {
	for _, n := range []string{credential, name} {
		if err := quota.CheckName(n); err != nil {
			return fmt.Errorf("%w: %w", quota.ErrMalformed, err)
		}
	}
	var micros int64
	if !until.IsZero() {
		micros = until.UnixMicro()
	}
	return l.update(ctx, func(s *session) error {
		b, err := s.bucket(credential, name)
		if err != nil || b.suspended == micros {
			return err
		}
		if err := b.row(); err != nil {
			return err
		}
		return s.change("bucket_suspend", b.id, micros)
	})
}
