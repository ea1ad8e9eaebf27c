package job

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"quotabudget/internal/quota"
)

// leaseTime is how long a key or a lock stays with a job that has died.
const leaseTime = time.Minute

// leases are the claims of a run: they are renewed while it lasts.
type leases struct {
	claims     quota.Claims
	credential string
	holder     string
	keep       time.Duration // how long it is remembered that a run with a key has succeeded
	log        *slog.Logger

	key, lock string // names of claims; "" while they are not held
}

func keyClaim(key string) string   { return "job:" + key }
func lockClaim(lock string) string { return "lock:" + lock }

func (l *leases) claim(name string) quota.Claim {
	return quota.Claim{Credential: l.credential, Name: name, Holder: l.holder, TTL: leaseTime}
}

func (l *leases) held() (names []string) {
	for _, name := range []string{l.key, l.lock} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// renew renews what is held. Errors are those of the ledger; what was lost to another is logged.
func (l *leases) renew(ctx context.Context) error {
	for _, name := range l.held() {
		state, err := l.claims.Claim(ctx, l.claim(name))
		if err != nil {
			return err
		}
		if state != quota.ClaimWon {
			l.log.Warn("this run was away for too long, and another may have taken its place",
				"claim", name)
			l.forget(name)
		}
	}
	return nil
}

func (l *leases) forget(name string) {
	if l.key == name {
		l.key = ""
	}
	if l.lock == name {
		l.lock = ""
	}
}

// done marks the key as that of a run that has succeeded.
func (l *leases) done() {
	if l.key == "" {
		return
	}
	l.finish(l.key, true)
	l.key = ""
}

// end gives back what is held.
func (l *leases) end() {
	for _, name := range l.held() {
		l.finish(name, false)
	}
}

func (l *leases) finish(name string, done bool) {
	claim := l.claim(name)
	if done {
		claim.TTL = l.keep
	}
	err := patiently(leaseTime/4, func(ctx context.Context) error {
		return l.claims.Finish(ctx, claim, done)
	})
	if err != nil && !errors.Is(err, quota.ErrNoClaim) {
		l.log.Warn("the ledger was not told that the run has ended", "claim", name, "error", err)
	}
}
