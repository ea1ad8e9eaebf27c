package quotatest

import (
	"context"
	"fmt"
	"time"

	"quotabudget/internal/quota"
)

// claimed is who has a piece of work and until when; nobody when it is done.
type claimed struct {
	holder string
	until  time.Time
}

// Claim implements quota.Claims.
func (m *Model) Claim(_ context.Context, c quota.Claim) (quota.ClaimState, error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key, now := c.Credential+" "+c.Name, m.Now()
	if old, ok := m.claims[key]; ok && now.Before(old.until) && old.holder != c.Holder {
		if old.holder == "" {
			return quota.ClaimDone, nil
		}
		return quota.ClaimHeld, nil
	}
	if m.claims == nil {
		m.claims = make(map[string]claimed)
	}
	m.claims[key] = claimed{c.Holder, now.Add(c.TTL)}
	return quota.ClaimWon, nil
}

// Finish implements quota.Claims.
func (m *Model) Finish(_ context.Context, c quota.Claim, done bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, now := c.Credential+" "+c.Name, m.Now()
	old, ok := m.claims[key]
	if !ok || !now.Before(old.until) || old.holder != c.Holder {
		return fmt.Errorf("%w: %s", quota.ErrNoClaim, c.Name)
	}
	delete(m.claims, key)
	if done {
		m.claims[key] = claimed{"", now.Add(c.TTL)}
	}
	return nil
}
