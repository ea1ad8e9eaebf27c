package quotatest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// Commit turns a hold into an entry.
func (m *Model) Commit(_ context.Context, c quota.Commit) (quota.Decision, error) {
	if err := c.Check(); err != nil {
		return quota.Decision{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	cred, now := m.credential(c.Credential), m.clock()
	asked := fmt.Sprint("commit", c.Units)
	if was, known := cred.settled[c.Reservation]; known && now < was.until {
		if was.question != asked {
			return quota.Decision{}, quota.ErrKeyReused
		}
		was.decision.Replayed = true
		return was.decision, nil
	}
	name, _, _ := quota.ParseReservation(c.Reservation)
	b := cred.bucket(name)
	n := max(now, b.newest+1)
	if err := b.canDraw(c.Reservation, max(0, c.Units), n); err != nil {
		return quota.Decision{}, err
	}
	i := b.find(c.Reservation, n)
	units := c.Units
	if units == quota.AllUnits {
		units = b.holds[i].left
	}
	b.holds = slices.Delete(b.holds, i, i+1)
	costs := []quota.Cost{{Bucket: name, Units: units}}
	d := quota.Decision{Allowed: true, At: moment(n), Units: quota.UnitsOf(costs)}
	if units > 0 {
		b.write(entry{n, c.ID, units, kept(c.Labels)}, c.Limits, false)
		d.Entry = c.ID
	}
	d.Remaining = m.remaining(cred, costs, c.Limits, rule{n: n, settled: true})
	until := now + quota.RetentionFor(c.Limits).Microseconds()
	cred.settled[c.Reservation] = answer{asked, d, until}
	return d, nil
}

// Release removes a hold.
func (m *Model) Release(_ context.Context, credential, reservation string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name, _, err := quota.ParseReservation(reservation)
	if err != nil {
		return 0, err
	}
	b := m.credential(credential).bucket(name)
	n := max(m.clock(), b.newest+1)
	if err := b.canDraw(reservation, 0, n); err != nil {
		return 0, err
	}
	i := b.find(reservation, n)
	left := b.holds[i].left
	b.holds = slices.Delete(b.holds, i, i+1)
	return left, nil
}

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
