package sqliteledger

import (
	"context"
	"fmt"

	"quotabudget/internal/quota"
)

var _ quota.Claims = (*Ledger)(nil)

// claimDone stands in the place of a holder.
const claimDone = ""

// claimsTrimmed is how many lapsed claims are forgotten in passing.
const claimsTrimmed = 16

// Claim implements quota.Claims.
func (l *Ledger) Claim(ctx context.Context, c quota.Claim) (state quota.ClaimState, err error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	err = l.update(ctx, func(s *session) error {
		holder, now := "", s.now()
		found, err := s.find("claim_find", []any{c.Credential, c.Name, now}, &holder)
		switch {
		case err != nil:
			return err
		case found && holder == claimDone:
			state = quota.ClaimDone
			return nil
		case found && holder != c.Holder:
			state = quota.ClaimHeld
			return nil
		}
		state = quota.ClaimWon
		if err := s.change("claim_trim", now, claimsTrimmed); err != nil {
			return err
		}
		return s.change("claim_put", c.Credential, c.Name, c.Holder, now+c.TTL.Microseconds())
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
		found, err := s.find("claim_find", []any{c.Credential, c.Name, now}, &holder)
		switch {
		case err != nil:
			return err
		case !found || holder != c.Holder:
			return fmt.Errorf("%w: %s", quota.ErrNoClaim, c.Name)
		case done:
			return s.change("claim_put", c.Credential, c.Name, claimDone, now+c.TTL.Microseconds())
		}
		return s.change("claim_give_back", c.Credential, c.Name)
	})
}
