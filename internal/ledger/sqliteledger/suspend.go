package sqliteledger

import (
	"context"

	"quotabudget/internal/quota"
)

// Suspend implements quota.Ledger.
func (l *Ledger) Suspend(ctx context.Context, of quota.Suspension) error {
	if err := of.Check(); err != nil {
		return err
	}
	return l.update(ctx, func(s *session) error {
		s.suspend(of)
		return nil
	})
}

func (s *session) suspend(of quota.Suspension) {
	b := s.bucket(of.Credential, of.Bucket)
	until := micros(of.Until, 0)
	if b.suspended != until {
		b.row()
		s.change("bucket_suspend", b.id, until)
	}
	switch {
	case until != 0:
		s.change("suspension_put", b.id, s.now(), of.By, of.Reason)
	case b.id != 0:
		s.change("suspension_drop", b.id)
	}
}
