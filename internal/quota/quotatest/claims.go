package quotatest

import (
	"errors"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// testClaims: one holder at a time, by the ledger's clock; done stays done.
func testClaims(t *testing.T, h Harness) {
	one, two := openClaims(t, h), openClaims(t, h)
	credential := newCredential()
	claim := func(holder string, ttl time.Duration) quota.Claim {
		return quota.Claim{Credential: credential, Name: "trending/US/2026-06-01T06:00:00Z", Holder: holder, TTL: ttl}
	}
	asks := func(at time.Duration, c quota.Claims, holder string, want quota.ClaimState) {
		t.Helper()
		h.SetNow(t, epoch.Add(at))
		if got, err := c.Claim(t.Context(), claim(holder, time.Minute)); err != nil || got != want {
			t.Errorf("at %v %s claims: %v, %v; want %v", at, holder, got, err, want)
		}
	}
	asks(0, one, "a", quota.ClaimWon)
	asks(0, two, "b", quota.ClaimHeld)
	asks(59*time.Second, one, "a", quota.ClaimWon) // renewed
	asks(118*time.Second, two, "b", quota.ClaimHeld)
	asks(119*time.Second+2*time.Millisecond, two, "b", quota.ClaimWon) // lapsed
	asks(120*time.Second, one, "a", quota.ClaimHeld)
	if err := one.Finish(t.Context(), claim("a", time.Minute), true); !errors.Is(err, quota.ErrNoClaim) {
		t.Errorf("a finishes what b has taken over: %v", err)
	}
	if err := two.Finish(t.Context(), claim("b", time.Minute), false); err != nil {
		t.Errorf("b gives back: %v", err)
	}
	asks(120*time.Second, one, "a", quota.ClaimWon)
	if err := one.Finish(t.Context(), claim("a", time.Hour), true); err != nil {
		t.Errorf("a finishes: %v", err)
	}
	asks(121*time.Second, two, "b", quota.ClaimDone)
	asks(121*time.Second, one, "a", quota.ClaimDone)
	asks(121*time.Second+time.Hour, two, "b", quota.ClaimWon) // forgotten
	if _, err := one.Claim(t.Context(), claim("no holder", time.Minute)); !errors.Is(err, quota.ErrMalformed) {
		t.Errorf("a malformed holder: %v", err)
	}
}

func openClaims(t *testing.T, h Harness) quota.Claims {
	t.Helper()
	c, ok := h.Open(t).(quota.Claims)
	if !ok {
		t.Fatal("the ledger shares no work: it is no quota.Claims")
	}
	return c
}
