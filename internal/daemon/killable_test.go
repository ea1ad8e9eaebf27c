package daemon_test

import (
	"context"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// killable is the ledger of a process that can die.
type killable struct {
	*ledger.Ledger
	p *proc
}

// count counts a call of the ledger.
func (p *proc) count(operation string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[operation]++
}

// takeCalls returns the number of ledger calls by kind since its last call.
func (p *proc) takeCalls() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	p.calls = make(map[string]int)
	return calls
}

func (m killable) Time(ctx context.Context) (time.Time, error) {
	m.p.count("time")
	return m.Ledger.Time(ctx)
}

func (m killable) Charge(ctx context.Context, c quota.Charge) (quota.Decision, error) {
	if m.p.dead.Load() {
		return quota.Decision{}, errDead
	}
	return m.Ledger.Charge(ctx, c)
}

func (m killable) Reserve(ctx context.Context, r quota.Reserve) (quota.Decision, error) {
	if m.p.dead.Load() {
		return quota.Decision{}, errDead
	}
	return m.Ledger.Reserve(ctx, r)
}

func (m killable) Settle(ctx context.Context, s quota.Settle) (quota.Decision, error) {
	if m.p.dead.Load() {
		return quota.Decision{}, errDead
	}
	return m.Ledger.Settle(ctx, s)
}

func (m killable) Release(ctx context.Context, r quota.Release) (map[string]int64, error) {
	if m.p.dead.Load() {
		return nil, errDead
	}
	return m.Ledger.Release(ctx, r)
}

func (m killable) Cancel(ctx context.Context, c quota.Charge, d quota.Decision) error {
	if m.p.dead.Load() {
		return errDead
	}
	return m.Ledger.Cancel(ctx, c, d)
}

func (m killable) Claim(ctx context.Context, c quota.Claim) (quota.ClaimState, error) {
	if m.p.dead.Load() || m.p.mute.Load() {
		return 0, errDead
	}
	return m.Ledger.Claim(ctx, c)
}

func (m killable) Finish(ctx context.Context, c quota.Claim, done bool) error {
	if done && m.p.doomed.Load() {
		m.p.crash()
	}
	if m.p.dead.Load() {
		return errDead
	}
	return m.Ledger.Finish(ctx, c, done)
}
