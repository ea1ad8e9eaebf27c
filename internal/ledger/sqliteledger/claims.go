package sqliteledger

import (
	"context"
	"fmt"

	"quotabudget/internal/quota"
)

var _ quota.Claims = (*Ledger)(nil)

// claimDone stands in the place of a holder.
const claimDone = ""

// Claim implements quota.Claims.
func (l *Ledger) Claim(ctx context.Context, c quota.Claim) (state quota.ClaimState, err error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	err = l.update(ctx, func(s *session) error {
		holder, now := "", s.now()
		found := s.find("claim_find", []any{c.Credential, c.Name, now}, &holder)
		switch {
		case found && holder == claimDone:
			state = quota.ClaimDone
		case found && holder != c.Holder:
			state = quota.ClaimHeld
		default:
			state = quota.ClaimWon
			s.change("claim_trim", now, trimClaims)
			s.change("claim_put", c.Credential, c.Name, c.Holder, now+c.TTL.Microseconds())
		}
		return nil
	})
	return state, err
}

// Finish implements quota.Claims.
func (l *Ledger) Finish(ctx context.Context, c quota.Claim, done bool) error {
	if err := c.Check(); err != nil {
		return err
	}
	return l.update(ctx, func(s *session) error {
		holder, now := "", s.now()
		found := s.find("claim_find", []any{c.Credential, c.Name, now}, &holder)
		switch {
		case !found || holder != c.Holder:
			return fmt.Errorf("%w: %s", quota.ErrNoClaim, c.Name)
		case done:
			s.change("claim_put", c.Credential, c.Name, claimDone, now+c.TTL.Microseconds())
		default:
			s.change("claim_give_back", c.Credential, c.Name)
		}
		return nil
	})
}
