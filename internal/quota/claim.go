package quota

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Claims shares work among the processes that spend from one ledger: a claim is a lease on a name,
// such as the tick of a job. Leases follow the ledger's clock.
type Claims interface {
	// Claim leases the name to the holder for the TTL, or renews the holder's lease, and returns
	// the state of the name.
	Claim(ctx context.Context, c Claim) (ClaimState, error)
	// Finish marks the holder's claim done for c.TTL, or ends it so that another process can
	// claim the name. Errors: ErrNoClaim if the lease has ended.
	Finish(ctx context.Context, c Claim, done bool) error
}

// Claim names a piece of work and the process that will do it.
type Claim struct {
	Credential string
	Name       string        // the work, in up to 256 bytes
	Holder     string        // the process: NewID at its start
	TTL        time.Duration // of the lease, at least 1 ms; for Finish: until done is forgotten
}

// ClaimState is the state of a name.
type ClaimState int

// The states of a claim.
const (
	ClaimHeld ClaimState = iota // by another process
	ClaimWon                    // by the caller, until its TTL
	ClaimDone                   // the work is done
)

// ErrNoClaim reports that the holder's lease has lapsed: another process may do the work.
var ErrNoClaim = errors.New("claim is not held")

// Check returns an error for a claim that no ledger accepts.
func (c Claim) Check() error {
	if err := CheckNames(c.Credential); err != nil {
		return err
	}
	if c.Name == "" || CheckText("claim", c.Name) != nil {
		return malformed("claim %q", c.Name)
	}
	if !idForm.MatchString(c.Holder) {
		return malformed("holder %q", c.Holder)
	}
	return checkTTL("claim", c.TTL)
}

func claimScope(name string) string { return "claim " + name }

// claimDone is the holder of a name whose work is done.
const claimDone = ""

// Claim leases a piece of work: see Claims.Claim.
func (a *Account) Claim(c Claim) (ClaimState, error) {
	was := a.Answer
	if was != nil && a.Now < was.Expires && was.Request != c.Holder {
		if was.Request == claimDone {
			return ClaimDone, nil
		}
		return ClaimHeld, nil
	}
	a.keepClaim(c, c.Holder)
	return ClaimWon, nil
}

// Finish ends a claim: see Claims.Finish.
func (a *Account) Finish(c Claim, done bool) error {
	was := a.Answer
	switch {
	case was == nil || a.Now >= was.Expires || was.Request != c.Holder:
		return fmt.Errorf("%w: %s", ErrNoClaim, c.Name)
	case done:
		a.keepClaim(c, claimDone)
	default:
		a.change.Forget = claimScope(c.Name)
	}
	return nil
}

// keepClaim stores the answer that represents a claim.
func (a *Account) keepClaim(c Claim, holder string) {
	a.change.Keep = &Answer{Name: claimScope(c.Name), Request: holder,
		Expires: a.Now + c.TTL.Microseconds()}
}
