package meter_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redisledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// atNoon is a stand-in of X behind a gate, with the ledger at noon in UTC.
func atNoon(t testing.TB, ledger func(now time.Time) quota.Ledger) *metered {
	t.Helper()
	m := onLedger(t, "x", ledger(noon), quota.Limit{Bucket: "money", Units: 100e6,
		Window: quota.Window{Calendar: "month", Zone: time.UTC}})
	m.standin.Now = func() time.Time { return noon }
	return m
}

// ledgersAt runs a test on each kind of ledger, whose clock stands still.
func ledgersAt(t *testing.T, test func(*testing.T, func(time.Time) quota.Ledger)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, func(now time.Time) quota.Ledger {
			l, err := ledger.OpenFile(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
			must(t, err)
			t.Cleanup(func() { l.Close() })
			l.Now = func() time.Time { return now }
			return l
		})
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, func(now time.Time) quota.Ledger {
			server := redistest.Start(t, redistest.Options{Clock: true})
			server.SetNow(t, now)
			l, err := redisledger.Open(t.Context(), server.URL())
			must(t, err)
			t.Cleanup(func() { l.Close() })
			return l
		})
	})
}

// read asks for a path, and wants an answer.
func (m *metered) read(t testing.TB, path string) {
	t.Helper()
	r := m.post(t.Context(), path, "")
	r.Method = "GET"
	if status, body, err := m.send(r); err != nil || status != 200 {
		t.Fatal(status, body, err)
	}
	m.settled(t)
}

// other is another gate before the same stand-in, as of another process.
func (m *metered) other(t testing.TB, ledger quota.Ledger) *metered {
	t.Helper()
	other := &metered{standin: m.standin, server: m.server, log: m.log}
	table, err := costs.Shipped().Upstream("x")
	must(t, err)
	other.gate(t, table, ledger, m.Budget.Limits)
	return other
}

// TestPaidOnce: a resource that was paid for today is free until midnight for all processes on the
// ledger.
func TestPaidOnce(t *testing.T) {
	ledgersAt(t, func(t *testing.T, ledger func(time.Time) quota.Ledger) {
		m := atNoon(t, ledger)
		m.read(t, "/2/tweets/1")
		m.read(t, "/2/tweets/1")
		m.read(t, "/2/tweets?ids=1,2,3&expansions=author_id")
		m.agrees(t, "money")
		if got := m.booked(t, "money"); got != 3*5000+3*10000 {
			t.Errorf("%d booked", got)
		}
		again := m.other(t, m.Budget.Ledger)
		again.read(t, "/2/tweets?ids=3,4")
		again.read(t, "/2/users/93") // an author, but read as a user
		again.read(t, "/2/users/1")  // who is no post
		again.agrees(t, "money", "requests")
	})
}

// Calls that read the same at once pay for it once, in one process and in several.
func TestPaidOnceTogether(t *testing.T) {
	ledgersAt(t, func(t *testing.T, ledger func(time.Time) quota.Ledger) {
		m := atNoon(t, ledger)
		gates := []*metered{m, m.other(t, m.Budget.Ledger), m.other(t, m.Budget.Ledger)}
		var calls sync.WaitGroup
		for i := range 24 {
			calls.Go(func() {
				gates[i%3].read(t, fmt.Sprintf("/2/tweets?ids=%d,%d,%d", i%5, i%7, i%3))
			})
		}
		calls.Wait()
		m.agrees(t, "money", "requests")
	})
}

// Around midnight, and the next day, nothing is free that the upstream may bill.
func TestPaidOnceMidnight(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := noon
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	l, err := ledger.OpenFile(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	m := atNoon(t, func(time.Time) quota.Ledger { return l })
	l.Now, m.standin.Now = clock, clock
	midnight := time.Date(noon.Year(), noon.Month(), noon.Day()+1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at     time.Duration // after midnight
		booked int64         // in all
	}{
		{-2 * time.Hour, 5000},
		{-2 * time.Minute, 5000},
		{-30 * time.Second, 10000}, // whose clock is right?
		{30 * time.Second, 15000},
		{2 * time.Minute, 20000}, // the one before may have been of the day before
		{3 * time.Minute, 20000},
		{23 * time.Hour, 20000},
		{25 * time.Hour, 25000},
	} {
		mu.Lock()
		now = midnight.Add(c.at)
		mu.Unlock()
		m.read(t, "/2/tweets/1")
		if got := m.booked(t, "money"); got != c.booked {
			t.Errorf("%v after midnight: %d booked, want %d", c.at, got, c.booked)
		}
	}
	if billed := m.standin.Counts().Units["money"]; billed != 15000 {
		t.Errorf("%d billed", billed)
	}
}

// A process that dies before it has booked a resource has not paid for it, nor has one whose ledger
// would not have it.
func TestPaidOnceKilled(t *testing.T) {
	t.Parallel()
	m := openMetered(t, "x")
	var dead atomic.Bool
	other := m.other(t, dying{m.Budget.Ledger.(claiming), &dead})
	dead.Store(true)
	other.read(t, "/2/tweets/1")
	m.read(t, "/2/tweets/1")
	if got := m.booked(t, "money"); got != 5000 {
		t.Errorf("%d booked", got)
	}
	other.read(t, "/2/tweets/2")
	dead.Store(false)
	other.read(t, "/2/tweets/2")
	if got := m.booked(t, "money"); got != 10000 {
		t.Errorf("%d booked", got)
	}
}

type claiming interface {
	quota.Ledger
	quota.Claims
}

// dying does not settle while it is dead.
type dying struct {
	claiming
	dead *atomic.Bool
}

func (d dying) Settle(ctx context.Context, s quota.Settle) (quota.Decision, error) {
	if d.dead.Load() {
		return quota.Decision{}, quota.ErrNoReservation
	}
	return d.claiming.Settle(ctx, s)
}

// An answer that is not whole pays for nothing: it is booked as it was held, and what it has is
// booked again.
func TestPaidOnceCut(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"cut", "truncated", "html"} {
		m := openMetered(t, "x")
		m.faults(t, fault+"@1")
		r := m.post(t.Context(), "/2/tweets/1", "")
		r.Method = "GET"
		_, _, _ = m.send(r)
		m.settled(t)
		before := m.booked(t, "money")
		m.read(t, "/2/tweets/1")
		if got := m.booked(t, "money"); got != before+5000 {
			t.Errorf("%s: %d booked after %d", fault, got, before)
		}
	}
}
