package redisledger

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/queue"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// together has calls on the bucket "default" of k queue in their order behind one that is under
// way, so that they are one group, and returns when all are answered. meanwhile, if it is not nil,
// is done when all are queued.
func together(t *testing.T, l *Ledger, meanwhile func(), calls ...func()) {
	t.Helper()
	r := charging(one("k", 1))
	behindOne(t, l.queues.Get(r.audience()), meanwhile, calls...)
}

// behindOne has calls queue in their order behind an operation that is under way.
func behindOne(t *testing.T, q *queue.Queue[work], meanwhile func(), calls ...func()) {
	t.Helper()
	release := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		err := q.Ask(context.Background(), &operation{}, true, func() {
			<-release
			q.Finish(nil, q.Take(1))
		})
		if err != nil {
			t.Error(err)
		}
	})
	for i := range len(calls) + 1 {
		for waiting := 0; waiting != i+1; runtime.Gosched() {
			waiting, _ = q.State()
		}
		if i < len(calls) {
			all.Go(calls[i])
		}
	}
	if meanwhile != nil {
		meanwhile()
	}
	close(release)
	all.Wait()
}

// asking is an operation for r.
func asking(r request, now time.Time) *operation {
	o := new(operation)
	o.Work.ask(r, now)
	return o
}

// scripts is how many scripts the server has run.
func scripts(t *testing.T, c redis.UniversalClient) string {
	t.Helper()
	info := parseInfo(c.Info(t.Context(), "commandstats").Val())
	calls, _, _ := strings.Cut(info["cmdstat_evalsha"], ",")
	return calls
}

// chargesOf charges so many times, and collects what each caller is told.
func chargesOf(l *Ledger, n int, units int64) (calls []func(), told []error, ids []string) {
	told, ids = make([]error, n), make([]string, n)
	for i := range n {
		calls = append(calls, func() {
			c := one("k", units)
			ids[i] = c.ID
			d, err := l.Charge(context.Background(), c)
			if err == nil && d.Entry != c.ID {
				err = fmt.Errorf("told %+v", d)
			}
			told[i] = err
		})
	}
	return calls, told, ids
}

func TestQueuedCallsAreOneGroup(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Clock: true})
	s.SetNow(t, time.UnixMicro(1_780_000_000_000_000/addUpEvery*addUpEvery+1)) // no sums are due
	l := open(t, s.URL())
	allow(t, l, one("k", 1))
	l.client.ConfigResetStat(t.Context())
	calls, told, ids := chargesOf(l, maxGroup+1, 1)
	together(t, l, nil, calls...)
	if err := errors.Join(told...); err != nil {
		t.Error(err)
	}
	if n := scripts(t, l.client); n != "calls=2" {
		t.Errorf("%s for %d charges", n, len(calls))
	}
	entries := entriesOf(t, l, "k")[1:]
	for i, e := range entries {
		if e.ID != ids[i] {
			t.Errorf("entry %d of %d is not of caller %d", i, len(entries), i)
		}
	}
}

func TestEachOfAGroupHasItsOwnAnswer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	ctx := context.Background()
	setAside(t, l, reserveOf("default.r", 20, time.Hour))
	draw := func(on string, units int64) quota.Charge {
		c := one("k", units)
		c.Reservation = "default." + on
		return c
	}
	keyed := func(key string, units int64) quota.Charge {
		c := one("k", units)
		c.Key = key
		return c
	}
	var got []string
	var calls []func()
	for _, c := range []quota.Charge{
		one("k", 50), one("k", 31), one("k", 29), keyed("never", 101), draw("r", 15), draw("r", 15),
		draw("r", 5), draw("none", 1), keyed("same", 1), keyed("same", 1),
		keyed("same", 2), one("k", 1),
	} {
		i := len(calls)
		got = append(got, "")
		calls = append(calls, func() {
			d, err := l.Charge(ctx, c)
			if err != nil && !errors.Is(err, quota.ErrCostExceedsLimit) {
				got[i] = strings.Fields(err.Error())[0]
				return
			}
			got[i] = fmt.Sprint(d.Allowed, d.Replayed, d.Never, " ", d.Remaining["default"])
		})
	}
	want := []string{
		"true false false 30", "false false false 30", "true false false 1", "false false true 0",
		"true false false 1", "default.r:", "true false false 1", "default.none:",
		"true false false 0", "true true false 0", "idempotency", "false false false 0",
	}
	together(t, l, nil, calls...)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// What is damaged for one of a group is damaged for nobody else.
func TestOneErrorTouchesNoOther(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]struct {
		lay  func(*testing.T, *Ledger)
		call func(*Ledger) error
		says string
	}{
		"a damaged reservation": {
			func(t *testing.T, l *Ledger) {
				must(t, l.client.HSet(t.Context(), stateKey("k", "default"), "r:r", "five"))
			}, func(l *Ledger) error {
				c := one("k", 1)
				c.Reservation = "default.r"
				_, err := l.Charge(context.Background(), c)
				return err
			}, "is damaged",
		},
		"a total that is too high": {
			func(t *testing.T, l *Ledger) {
				must(t, l.client.Del(t.Context(), stateKey("k", "default")))
				must(t, l.client.Del(t.Context(), logKey("k", "default")))
				long := time.Now().Add(-48 * time.Hour).UnixMicro()
				member := fmt.Sprintf("%d:1:x:", int64(quota.MaxTotal-50))
				must(t, l.client.ZAdd(t.Context(), logKey("k", "default"),
					redis.Z{Score: float64(long), Member: member}))
			}, func(l *Ledger) error {
				_, err := l.Charge(context.Background(), one("k", 60))
				return err
			}, "total is at its maximum",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, redistest.Options{})
			l := open(t, s.URL())
			allow(t, l, one("k", 1))
			bad.lay(t, l)
			calls, told, ids := chargesOf(l, 4, 1)
			var err error
			calls = slices.Insert(calls, 2, func() { err = bad.call(l) })
			together(t, l, nil, calls...)
			if other := errors.Join(told...); other != nil {
				t.Errorf("the others: %v", other)
			}
			if !errors.Is(err, quota.ErrLedgerUnusable) || !says(err, bad.says) {
				t.Errorf("got %v", err)
			}
			log := entriesOf(t, l, "k")
			for i, e := range log[len(log)-4:] {
				if e.ID != ids[i] {
					t.Errorf("the log ends with %+v, want %v", log[len(log)-4:], ids)
				}
			}
		})
	}
}

func TestLostAnswerIsLostForItsGroup(t *testing.T) {
	t.Parallel()
	for kind, start := range broken(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url, b := start(t)
			l := open(t, url)
			allow(t, l, one("k", 1))
			before := b.Ran()
			calls, told, _ := chargesOf(l, 5, 1)
			together(t, l, b.LoseNext, calls...)
			for _, err := range told {
				if !errors.Is(err, quota.ErrUnreachable) {
					t.Errorf("got %v", err)
				}
			}
			if ran := b.Ran() - before; ran != 1 {
				t.Errorf("run %d times", ran)
			}
			if n := len(entriesOf(t, l, "k")); n != 6 {
				t.Errorf("%d entries", n)
			}
		})
	}
}

func TestCancelledCallerLeavesItsGroup(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	allow(t, l, one("k", 1))
	calls, told, ids := chargesOf(l, 3, 1)
	ctx, cancel := context.WithCancel(t.Context())
	queued := func() {
		if _, err := l.Charge(ctx, one("k", 50)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	calls = slices.Insert(calls, 1, queued)
	together(t, l, func() {
		cancel()
		r := charging(one("k", 1))
		q := l.queues.Get(r.audience())
		for waiting := 0; waiting != 4; runtime.Gosched() { // the one under way, and three
			waiting, _ = q.State()
		}
	}, calls...)
	if err := errors.Join(told...); err != nil {
		t.Error(err)
	}
	log := entriesOf(t, l, "k")[1:]
	if len(log) != 3 || log[0].ID != ids[0] || log[1].ID != ids[1] || log[2].ID != ids[2] {
		t.Errorf("entries %+v, want %v", log, ids)
	}
}

// Who leads a group may leave when it was sent, and so may any other: the rest are answered.
func TestCancelledCallerDoesNotWaitForItsGroup(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l, other := open(t, s.URL()), admin(t, s.Addr)
	allow(t, l, one("k", 1))
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 2)
	leaver := func() {
		_, err := l.Charge(ctx, one("k", 50))
		left <- err
	}
	calls, told, _ := chargesOf(l, 3, 1)
	calls = slices.Concat([]func(){leaver}, calls, []func(){leaver})
	done := make(chan struct{})
	together(t, l, func() {
		do(t, other, "client", "pause", "60000", "write")
		go func() {
			defer close(done)
			for blocked := ""; blocked != "1"; { // the group was sent
				info := parseInfo(other.Info(context.Background(), "clients").Val())
				blocked = info["blocked_clients"]
			}
			cancel()
			for range 2 {
				if err := <-left; !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			}
			do(t, other, "client", "unpause")
		}()
	}, calls...)
	<-done
	if err := errors.Join(told...); err != nil {
		t.Error(err)
	}
	for waiting := 0; waiting < 5; { // one of the two was denied
		waiting = len(entriesOf(t, l, "k"))
	}
}

// A group is recorded as a whole or not at all, wherever the memory ends.
func TestGroupOutOfMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	for round := 0; ; round++ {
		limits := []quota.Limit{day(quota.MaxUnits)}
		errs := make([]error, 20)
		var calls []func()
		for i := range errs {
			c := one("k", 1)
			c.Limits, c.Labels = limits, quota.Labels{"note": strings.Repeat("x", 100+round*20+i)}
			calls = append(calls, func() { _, errs[i] = l.Charge(context.Background(), c) })
		}
		if round == 3 {
			info := parseInfo(l.client.Info(t.Context(), "memory").Val())
			do(t, l.client, "config", "set", "maxmemory", info["used_memory"])
			do(t, l.client, "config", "set", "maxmemory-policy", "noeviction")
		}
		together(t, l, nil, calls...)
		refused := 0
		for _, err := range errs {
			if errors.Is(err, quota.ErrLedgerUnusable) {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		entries := len(entriesOf(t, l, "k"))
		if refused > 0 {
			if refused != 20 || entries != 20*round {
				t.Errorf("round %d: %d of 20 refused, %d entries", round, refused, entries)
			}
			break
		}
		if entries != 20*(round+1) {
			t.Fatalf("round %d: %d entries", round, entries)
		}
	}
	do(t, l.client, "config", "set", "maxmemory", "0")
	allow(t, l, one("k", 1))
}

func TestGroupAfterScriptFlush(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	allow(t, l, one("k", 1))
	calls, told, _ := chargesOf(l, 7, 1)
	together(t, l, func() { do(t, l.client, "script", "flush") }, calls...)
	if err := errors.Join(told...); err != nil {
		t.Error(err)
	}
	if n := len(entriesOf(t, l, "k")); n != 8 {
		t.Errorf("%d entries", n)
	}
}
