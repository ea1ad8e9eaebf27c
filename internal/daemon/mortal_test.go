package daemon_test

import (
	"context"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// mortal is the ledger of a process that can die.
type mortal struct {
	*ledger.Ledger
	p *proc
}

func (m mortal) count(operation string) {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	m.p.calls[operation]++
}

// takeCalls returns the number of ledger calls by kind since its last call.
func (p *proc) takeCalls() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	p.calls = make(map[string]int)
	return calls
}

func (m mortal) Usage(ctx context.Context, credential string,
	limits []quota.Limit) (quota.Usage, error) {
	m.count("usage")
	return m.Ledger.Usage(ctx, credential, limits)
}

func (m mortal) Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error) {
	m.count("sums")
	return m.Ledger.Sums(ctx, q)
}

func (m mortal) Between(ctx context.Context, credential, bucket string,
	from, to time.Time) (int64, error) {
	m.count("between")
	return m.Ledger.Between(ctx, credential, bucket, from, to)
}

func (m mortal) Time(ctx context.Context) (time.Time, error) {
	m.count("time")
	return m.Ledger.Time(ctx)
}

func (m mortal) Charge(ctx context.Context, c quota.Charge) (quota.Decision, error) {
	m.count("charge")
	if m.p.dead.Load() {
		return quota.Decision{}, errDead
	}
	return m.Ledger.Charge(ctx, c)
}

func (m mortal) Reserve(ctx context.Context, r quota.Reserve) (quota.Decision, error) {
	if m.p.dead.Load() {
		return quota.Decision{}, errDead
	}
	return m.Ledger.Reserve(ctx, r)
}

func (m mortal) Settle(ctx context.Context, s quota.Settle) (quota.Decision, error) {
	if m.p.dead.Load() {
		return quota.Decision{}, errDead
	}
	return m.Ledger.Settle(ctx, s)
}

func (m mortal) Release(ctx context.Context, credential, reservation string) (map[string]int64,
	error) {
	if m.p.dead.Load() {
		return nil, errDead
	}
	return m.Ledger.Release(ctx, credential, reservation)
}

func (m mortal) Cancel(ctx context.Context, c quota.Charge, d quota.Decision) error {
	if m.p.dead.Load() {
		return errDead
	}
	return m.Ledger.Cancel(ctx, c, d)
}

func (m mortal) Claim(ctx context.Context, c quota.Claim) (quota.ClaimState, error) {
	m.count("claim")
	if m.p.dead.Load() || m.p.mute.Load() {
		return 0, errDead
	}
	return m.Ledger.Claim(ctx, c)
}

func (m mortal) Finish(ctx context.Context, c quota.Claim, done bool) error {
	m.count("finish")
	if done && m.p.doomed.Load() {
		m.p.crash()
	}
	if m.p.dead.Load() {
		return errDead
	}
	return m.Ledger.Finish(ctx, c, done)
}
