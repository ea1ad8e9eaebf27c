package quotatest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

const (
	handles = 3
	callers = 5 // on each handle: more concurrent calls make porcupine search longer
	each    = 24
)

// result is a concurrent charge and its decision.
type result struct {
	porcupine.Operation
	units    int64 // of the first bucket
	decision quota.Decision
}

// crowd makes charges from several goroutines on each of several handles, and returns their
// results. change prepares each charge.
func (s *subject) crowd(change func(c *quota.Charge)) (results []result) {
	var all sync.WaitGroup
	var one sync.Mutex
	began := time.Now()
	for i := range handles {
		l := s.h.Open(s)
		for j := range callers {
			all.Go(func() {
				for k := range each {
					c := s.newCharge(1)
					c.ID = fmt.Sprintf("%d-%d-%d", i, j, k)
					change(&c)
					op := porcupine.Operation{ClientId: callers*i + j,
						Call: time.Since(began).Nanoseconds()}
					d, err := l.Charge(s.Context(), c)
					op.Return = time.Since(began).Nanoseconds()
					if err != nil && !errors.Is(err, quota.ErrReservationShort) {
						s.Error(err)
					}
					one.Lock()
					results = append(results, result{op, c.Costs[0].Units, d})
					one.Unlock()
				}
			})
		}
	}
	all.Wait()
	return results
}

// allowed counts the charges that were allowed.
func allowed(results []result) (n int) {
	for _, r := range results {
		if r.decision.Allowed {
			n++
		}
	}
	return n
}

// spent is the answer to a charge of some units.
type spent struct {
	allowed   bool
	remaining int64
}

// spending is a bucket under dayLimit.
var spending = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		used := state.(int64)
		fits := used+input.(int64) <= dayLimit.Units
		if fits {
			used += input.(int64)
		}
		return output == any(spent{fits, dayLimit.Units - used}), used
	},
}

// testOrder: the answers of several processes are linearizable: some order of the calls explains
// them all.
func testOrder(t *testing.T, h Harness) {
	var history []porcupine.Operation
	s := newSubject(t, h, dayLimit)
	for _, r := range s.crowd(func(c *quota.Charge) { c.Costs[0].Units = 1 + rand.Int64N(9) }) {
		r.Input, r.Output = r.units, spent{r.decision.Allowed, r.decision.Remaining["default"]}
		history = append(history, r.Operation)
	}
	if r := porcupine.CheckOperationsTimeout(spending, history, time.Minute); r != porcupine.Ok {
		t.Errorf("%s for %d charges", r, len(history))
	}
	for i, log := 1, s.log("default"); i < len(log); i++ {
		if log[i].Total != log[i-1].Total+log[i].Units || !log[i].At.After(log[i-1].At) {
			t.Fatalf("entry %d is %+v after %+v", i, log[i], log[i-1])
		}
	}
}

// testExactlyTheLimit charges two buckets in either order.
func testExactlyTheLimit(t *testing.T, h Harness) {
	s, wide := newSubject(t, h, dayLimit), searchLimit
	wide.Units = 1000
	n := allowed(s.crowd(func(c *quota.Charge) {
		c.Limits = []quota.Limit{dayLimit, wide}
		c.Costs = append(c.Costs, quota.Cost{Bucket: "search_list", Units: 2})
		if c.ID[len(c.ID)-1]%2 == 0 {
			c.Costs[0], c.Costs[1] = c.Costs[1], c.Costs[0]
		}
	}))
	both := len(s.log("default")) + len(s.log("search_list"))
	if n != int(dayLimit.Units) || both != 2*n {
		t.Errorf("%d charges were allowed, want %d; %d entries", n, dayLimit.Units, both)
	}
}

// testOneKeyOnce: one idempotency key charges once, however many callers send it. This is
// invariant I4.
func testOneKeyOnce(t *testing.T, h Harness) {
	replayed, entries := 0, map[string]bool{}
	s := newSubject(t, h, dayLimit)
	results := s.crowd(func(c *quota.Charge) { c.Key, c.Costs[0].Units = "once", 60 })
	for _, r := range results {
		if entries[r.decision.Entry] = true; r.decision.Replayed {
			replayed++
		}
	}
	if allowed(results) != len(results) || replayed != len(results)-1 || len(entries) != 1 ||
		len(s.log("default")) != 1 {
		t.Errorf("%d of %d replayed, %d different entries", replayed, len(results), len(entries))
	}
}

// testDrawsAtOnce draws from one reservation until it is empty.
func testDrawsAtOnce(t *testing.T, h Harness) {
	s := newSubject(t, h, dayLimit)
	s.reserve("default.r", 50, time.Hour)
	drawn := allowed(s.crowd(func(c *quota.Charge) { c.Reservation = "default.r" }))
	left, err := s.ledger.Release(t.Context(), quota.Release{Credential: s.credential,
		Reservation: "default.r"})
	if drawn != 50 || left["default"] != 0 || err != nil {
		t.Errorf("%d units were drawn and %v are left (%v), want 50 and 0", drawn, left, err)
	}
}

// testClaims: one holder at a time, by the ledger's clock; a finished claim stays done.
func testClaims(t *testing.T, h Harness) {
	handles := []*ledger.Ledger{h.Open(t), h.Open(t)}
	c := quota.Claim{Credential: newCredential(), Name: "trending/US/2026-06-01T06:00:00Z"}
	const second, done, free = time.Second, 1, -1 // ends of a claim: finished as done, or released
	for i, step := range []struct {
		at     time.Duration
		holder string
		finish int
		want   quota.ClaimState
		err    error
	}{
		{0, "a", 0, quota.ClaimWon, nil},
		{0, "b", 0, quota.ClaimHeld, nil},
		{59 * second, "a", 0, quota.ClaimWon, nil}, // renewed
		{118 * second, "b", 0, quota.ClaimHeld, nil},
		{119*second + 2*time.Millisecond, "b", 0, quota.ClaimWon, nil}, // the lease has ended
		{120 * second, "a", 0, quota.ClaimHeld, nil},
		{120 * second, "a", done, 0, quota.ErrNoClaim},
		{120 * second, "b", free, 0, nil},
		{120 * second, "a", 0, quota.ClaimWon, nil},
		{120 * second, "a", done, 0, nil},
		{121 * second, "b", 0, quota.ClaimDone, nil},
		{121 * second, "a", 0, quota.ClaimDone, nil},
		{181 * second, "b", 0, quota.ClaimWon, nil}, // the mark is deleted
		{181 * second, "no holder", 0, 0, quota.ErrMalformed},
	} {
		h.SetNow(t, epoch.Add(step.at))
		c.Holder, c.TTL = step.holder, time.Minute
		var got quota.ClaimState
		var err error
		if step.finish != 0 {
			err = handles[i%2].Finish(t.Context(), c, step.finish == done)
		} else {
			got, err = handles[i%2].Claim(t.Context(), c)
		}
		if got != step.want || !errors.Is(err, step.err) {
			t.Errorf("step %d: %v, %v; want %v, %v", i, got, err, step.want, step.err)
		}
	}
}
