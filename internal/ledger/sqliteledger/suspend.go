package sqliteledger

import (
	"context"
	"time"

	"quotabudget/internal/quota"
)

// Suspend implements quota.Ledger.
func (l *Ledger) Suspend(ctx context.Context, credential, name string, until time.Time) error {
	if err := quota.CheckBucketOf(credential, name); err != nil {
		return err
	}
	return l.update(ctx, func(s *session) error {
		s.suspend(credential, name, micros(until, 0))
		return nil
	})
}

func (s *session) suspend(credential, name string, until int64) {
	b := s.bucket(credential, name)
	if b.suspended != until {
		b.row()
		s.change("bucket_suspend", b.id, until)
	}
}
