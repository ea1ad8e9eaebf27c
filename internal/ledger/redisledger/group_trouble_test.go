package redisledger

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// endless is a limit that no test uses up.
var endless = []quota.Limit{{
	Bucket: "default", Units: quota.MaxUnits, Window: quota.Sliding(24 * time.Hour),
}}

// rush is callers of one process who charge the same bucket over and over, so that they are groups.
type rush struct {
	l    *Ledger
	done atomic.Bool
	all  sync.WaitGroup

	mu   sync.Mutex
	told map[string]bool // by ID of what was allowed
	lost map[string]error
}

// newRush has so many callers charge until they are told to end.
func newRush(l *Ledger, callers int) *rush {
	r := &rush{l: l, told: make(map[string]bool), lost: make(map[string]error)}
	r.join(callers, context.Background)
	return r
}

// join has more callers charge, each until its first error, with a context for each charge.
func (r *rush) join(callers int, next func() context.Context) {
	for range callers {
		r.all.Go(func() {
			for !r.done.Load() && r.charge(next()) == nil {
			}
		})
	}
}

func (r *rush) charge(ctx context.Context) error {
	c := one("k", 1)
	c.Limits = endless
	if rand.IntN(4) == 0 {
		c.Key = c.ID
	}
	d, err := r.l.Charge(ctx, c)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.lost[c.ID] = err
	} else if d.Allowed && d.Entry == c.ID {
		r.told[c.ID] = true
	}
	return err
}

// await waits until so many were told more.
func (r *rush) await(t *testing.T, more int) {
	t.Helper()
	count := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.told) + len(r.lost)
	}
	want := count() + more
	eventually(t, "more is charged", func() bool { return count() >= want })
}

// end lets the callers finish, and holds the log against what they were told: who was allowed is in
// it once, and who does not know may be.
func (r *rush) end(t *testing.T) {
	t.Helper()
	r.done.Store(true)
	r.all.Wait()
	logged := make(map[string]bool)
	for i, e := range entriesOf(t, r.l, "k") {
		if e.Total != int64(i+1) || logged[e.ID] {
			t.Fatalf("entry %d: %+v", i, e)
		}
		if logged[e.ID] = true; !r.told[e.ID] && r.lost[e.ID] == nil {
			t.Errorf("%s is in the log, and nobody asked for it", e.ID)
		}
	}
	for id := range r.told {
		if !logged[id] {
			t.Errorf("%s was allowed, and is not in the log", id)
		}
	}
}

// When the server is killed under groups, each caller is told what a lone caller is, and the log
// has what the others were told.
func TestServerIsKilledUnderGroups(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{AOF: true})
	l := open(t, s.URL())
	r := newRush(l, 20)
	r.await(t, 100)
	s.Kill()
	r.all.Wait()
	if len(r.lost) != 20 {
		t.Errorf("%d of 20 callers were told that the server is gone", len(r.lost))
	}
	for id, err := range r.lost {
		if !errors.Is(err, quota.ErrUnreachable) || errors.Is(err, quota.ErrLedgerUnusable) {
			t.Errorf("%s: %v", id, err)
		}
	}
	s.Restart(t)
	// After many failed dials the client tries one a second, and fails the others without trying.
	eventually(t, "the server is reached again", func() bool {
		return l.client.Ping(t.Context()).Err() == nil
	})
	r.end(t)
	sound(t, l, "k")
}

// While the slot of a bucket moves under groups, nobody is told of an error.
func TestSlotMovesUnderGroups(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, documentedACL(t))
	l := open(t, "redis+cluster://quota:PASSWORD@"+c.Masters[0].Addr)
	slot, err := c.Admin(c.Masters[0]).ClusterKeySlot(t.Context(), prefix("k")).Result()
	if err != nil {
		t.Fatal(err)
	}
	from := c.Owner(slot)
	r := newRush(l, 10)
	r.await(t, 100)
	c.Move(t, slot, c.Masters[from], c.Masters[(from+1)%3])
	r.await(t, 100)
	r.end(t)
	if len(r.lost) > 0 {
		t.Errorf("told %v", r.lost)
	}
}

// Callers who leave groups, queued or sent, are told only that, and take nobody with them.
func TestCallersLeaveGroups(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	leaving := func() context.Context {
		ctx, cancel := context.WithCancel(context.Background())
		after := rand.IntN(60)
		go func() {
			for range after {
				l.client.Ping(context.Background()) // some of a group's time
			}
			cancel()
		}()
		return ctx
	}
	r := newRush(l, 10)
	for round := range 10 {
		r.join(20, leaving)
		eventually(t, "they have left", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.lost) >= 20*(round+1)
		})
	}
	r.end(t)
	if len(r.lost) != 200 {
		t.Errorf("%d were told of an error, of whom 200 have left", len(r.lost))
	}
	for id, err := range r.lost {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", id, err)
		}
	}
}
