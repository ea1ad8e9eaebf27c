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

func (m killable) Claim(ctx context.Context, c quota.Claim) (quota.ClaimState, error) {
	if m.p.mute.Load() {
		return 0, errDead
	}
	return m.Ledger.Claim(ctx, c)
}

func (m killable) Finish(ctx context.Context, c quota.Claim, done bool) error {
	if done && m.p.doomed.Load() {
		m.p.crash()
	}
	return m.Ledger.Finish(ctx, c, done)
}

// mortal is the store of a process that can die: a dead one changes nothing.
type mortal struct {
	ledger.Store
	p *proc
}

func (m mortal) Update(ctx context.Context, scope quota.Scope,
	decide func(*quota.Account) (quota.Change, error)) error {
	if m.p.dead.Load() {
		return errDead
	}
	return m.Store.Update(ctx, scope, decide)
}
