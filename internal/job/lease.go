package job

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"quotabudget/internal/quota"
)

// leaseTime is how long a key or a lock stays with a job that has died.
const leaseTime = time.Minute

// leases are the claims of a run, renewed while it is under way.
type leases struct {
	claims     quota.Claims
	credential string
	holder     string
	keep       time.Duration // how long the success of a run with a key is remembered
	log        *slog.Logger

	held    []string      // names of claims
	ttl     time.Duration // of the claims
	renewed time.Time     // time of the last renewal, by the wall clock
	lost    chan struct{} // closed when another run may have a claim
}

// Prefixes of the names of claims.
const (
	keyPrefix  = "job:"
	lockPrefix = "lock:"
)

func (l *leases) claim(name string) quota.Claim {
	return quota.Claim{Credential: l.credential, Name: name, Holder: l.holder, TTL: l.ttl}
}

// renew renews the claims, or gives them up if another run has one. Errors are the ledger's.
func (l *leases) renew(ctx context.Context) error {
	now := wallClock()
	for _, name := range l.held {
		state, err := l.claims.Claim(ctx, l.claim(name))
		if err != nil {
			return err
		}
		if state != quota.ClaimWon {
			l.lose()
			return nil
		}
	}
	l.renewed = now
	return nil
}

// lose gives up all claims without releasing them, because another run may have them.
func (l *leases) lose() {
	l.held = nil
	close(l.lost)
}

func (l *leases) isLost() bool {
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
}

// wallClock returns a time that also passes while the machine sleeps.
func wallClock() time.Time { return time.Now().Round(0) }

// end releases the claims. If the run has succeeded, it records that for the run's key.
func (l *leases) end(succeeded bool) {
	for _, name := range l.held {
		claim := l.claim(name)
		done := succeeded && strings.HasPrefix(name, keyPrefix)
		if done {
			claim.TTL = l.keep
		}
		err := patiently(l.ttl/4, func(ctx context.Context) error {
			return l.claims.Finish(ctx, claim, done)
		})
		if err != nil && !errors.Is(err, quota.ErrNoClaim) {
			l.log.Warn("cannot release the claim of a run that has ended", "claim", name, "error",
				err)
		}
	}
}
