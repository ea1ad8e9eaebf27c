package quotatest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

const (
	handles    = 3
	goroutines = 5 // on each handle
	each       = 12
)

// testConcurrent: many at once are allowed exactly the limit between them.
func testConcurrent(t *testing.T, h Harness) {
	var all crowd
	for range handles {
		all = append(all, newSubject(t, h, dayLimit))
	}
	t.Run("Limit", all.testExactlyTheLimit)
	t.Run("Key", all.testOneKeyOnce)
	t.Run("Draw", all.testDrawsAtOnce)
}

// crowd is several handles on one store.
type crowd []*subject

// begin gives them one credential, for one test.
func (all crowd) begin(t *testing.T) *subject {
	credential := newCredential()
	for _, s := range all {
		s.TB, s.credential = t, credential
	}
	return all[0]
}

// charge has every handle charge one unit from several goroutines, and waits for them all.
// change makes each charge what it is to be.
func (all crowd) charge(change func(c *quota.Charge), answer func(quota.Decision, error)) {
	var group sync.WaitGroup
	for i, s := range all {
		for j := range goroutines {
			group.Go(func() {
				for k := range each {
					c := s.newCharge(1)
					c.ID = fmt.Sprintf("%d-%d-%d", i, j, k)
					change(&c)
					answer(s.ledger.Charge(s.Context(), c))
				}
			})
		}
	}
	group.Wait()
}

// testExactlyTheLimit charges two buckets in either order.
func (all crowd) testExactlyTheLimit(t *testing.T) {
	s := all.begin(t)
	limits := []quota.Limit{dayLimit, searchLimit}
	limits[1].Units = 1000
	var allowed atomic.Int64
	all.charge(func(c *quota.Charge) {
		c.Costs, c.Limits = both(1, 2), limits
		if c.ID[len(c.ID)-1]%2 == 0 {
			c.Costs[0], c.Costs[1] = c.Costs[1], c.Costs[0]
		}
	}, func(d quota.Decision, err error) {
		if err != nil {
			t.Error(err)
		}
		if d.Allowed {
			allowed.Add(1)
		}
	})
	if allowed.Load() != dayLimit.Units {
		t.Errorf("%d charges were allowed, want %d", allowed.Load(), dayLimit.Units)
	}
	for bucket, units := range map[string]int64{"default": 1, "search_list": 2} {
		log := s.log(bucket)
		if int64(len(log)) != dayLimit.Units {
			t.Fatalf("%d entries in %s; want %d", len(log), bucket, dayLimit.Units)
		}
		for i, e := range log {
			if e.Total != units*int64(i+1) || i > 0 && !e.At.After(log[i-1].At) {
				t.Fatalf("entry %d of %s is %+v after %+v", i, bucket, e, log[max(0, i-1)])
			}
		}
	}
}

func (all crowd) testOneKeyOnce(t *testing.T) {
	all.begin(t)
	var first, replayed atomic.Int64
	var entries sync.Map
	all.charge(func(c *quota.Charge) {
		c.Key, c.Costs[0].Units = "once", 60
	}, func(d quota.Decision, err error) {
		switch {
		case err != nil || !d.Allowed:
			t.Errorf("%+v, %v", d, err)
		case d.Replayed:
			replayed.Add(1)
		default:
			first.Add(1)
		}
		entries.Store(d.Entry, true)
	})
	different := 0
	entries.Range(func(any, any) bool { different++; return true })
	if first.Load() != 1 || replayed.Load() != handles*goroutines*each-1 || different != 1 {
		t.Errorf("%d charges, %d replays, %d different entries", first.Load(), replayed.Load(),
			different)
	}
}

// testDrawsAtOnce draws from one reservation until it is empty.
func (all crowd) testDrawsAtOnce(t *testing.T) {
	s := all.begin(t)
	s.reserve("default.r", 50, time.Hour)
	var drawn atomic.Int64
	all.charge(func(c *quota.Charge) {
		c.Reservation = "default.r"
	}, func(d quota.Decision, err error) {
		if err != nil && errorName(err) != "reservation_short" {
			t.Error(err)
		}
		if d.Allowed {
			drawn.Add(1)
		}
	})
	left, err := s.ledger.Release(t.Context(), s.credential, "default.r")
	if drawn.Load() != 50 || left["default"] != 0 || err != nil {
		t.Errorf("%d units were drawn and %v are left (%v), want 50 and 0", drawn.Load(), left, err)
	}
}

// testClaims: one holder at a time, by the ledger's clock; done stays done.
func testClaims(t *testing.T, h Harness) {
	one, two := h.Open(t).(quota.Claims), h.Open(t).(quota.Claims)
	credential := newCredential()
	claim := func(holder string, ttl time.Duration) quota.Claim {
		const name = "trending/US/2026-06-01T06:00:00Z"
		return quota.Claim{Credential: credential, Name: name, Holder: holder, TTL: ttl}
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
	err := one.Finish(t.Context(), claim("a", time.Minute), true)
	if !errors.Is(err, quota.ErrNoClaim) {
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
	_, err = one.Claim(t.Context(), claim("no holder", time.Minute))
	if !errors.Is(err, quota.ErrMalformed) {
		t.Errorf("a malformed holder: %v", err)
	}
}
