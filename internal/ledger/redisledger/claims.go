package redisledger

import (
	"context"
	"fmt"

	"quotabudget/internal/quota"
)

// Claim leases a piece of work.
func (l *Ledger) Claim(ctx context.Context, c quota.Claim) (quota.ClaimState, error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	state, err := l.runClaim(ctx, c, "claim")
	return quota.ClaimState(state), err
}

// Finish ends a lease.
func (l *Ledger) Finish(ctx context.Context, c quota.Claim, done bool) error {
	if err := c.Check(); err != nil {
		return err
	}
	how := "give-back"
	if done {
		how = "done"
	}
	had, err := l.runClaim(ctx, c, how)
	if err == nil && had == 0 {
		err = fmt.Errorf("%w: %s", quota.ErrNoClaim, c.Name)
	}
	return err
}

func (l *Ledger) runClaim(ctx context.Context, c quota.Claim, how string) (int64, error) {
	keys := []string{claimKey(c.Credential, c.Name)}
	return l.run1(ctx, "claim", keys, c.Holder, c.TTL.Milliseconds(), how)
}
