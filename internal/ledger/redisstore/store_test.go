package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// TestScriptFlushInMidRun: the scripts are sent again to a server that has dropped them.
func TestScriptFlushInMidRun(t *testing.T) {
	t.Parallel()
	l := openEnv(t, redistest.Start(t, redistest.Options{}).URL())
	var wg sync.WaitGroup
	var allowed atomic.Int64
	for n := range 8 {
		wg.Go(func() {
			for range 25 {
				c := one("k", 1)
				if n%2 == 0 {
					c.Key = c.ID
				}
				if d, err := l.Charge(t.Context(), c); err != nil {
					t.Error(err)
				} else if d.Allowed {
					allowed.Add(1)
				}
				l.client.ScriptFlush(t.Context())
			}
		})
	}
	wg.Wait()
	if allowed.Load() != 100 {
		t.Errorf("allowed %d of a limit of 100", allowed.Load())
	}
}

// TestKilledServerForgetsNothing: with an append-only file, a killed server keeps every charge.
func TestKilledServerForgetsNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{AOF: true})
	l := openEnv(t, s.URL())
	before := allowedOf(t, l, 60)
	setAside(t, l, reserveOf("default.r", 10, time.Hour))
	s.Kill()
	if err := chargeErr(t, l); !errors.Is(err, quota.ErrUnreachable) {
		t.Errorf("a dead server: got %v, want ErrUnreachable", err)
	}
	// without a connection, nothing can have been executed
	if err := chargeErr(t, l); !errors.Is(err, quota.ErrNotExecuted) {
		t.Errorf("no server: got %v, want ErrNotExecuted", err)
	}
	s.Restart(t)
	if after := allowedOf(t, l, 60); before != 60 || after != 30 {
		t.Errorf("allowed %d, then %d after the restart; want 60, 30 with 10 held", before, after)
	}
	c := one("k", 10)
	c.Reservation = "default.r"
	allow(t, l, c)
}

// TestOutOfMemoryChangesNothing: a charge that fails for lack of memory changes nothing, in the
// middle of a group or alone.
func TestOutOfMemoryChangesNothing(t *testing.T) {
	t.Parallel()
	l := openEnv(t, redistest.Start(t, redistest.Options{}).URL())
	allowedOf(t, l, 10)
	setAside(t, l, reserveOf("default.open", 1, time.Hour))
	before := dump(t, l.client, "k")
	l.client.ConfigSet(t.Context(), "maxmemory", "1mb")
	ctx, keyed := t.Context(), one("k", 1)
	keyed.Key = "once"
	suspended := quota.Suspension{Credential: "k", Bucket: "default",
		Until: time.Now().Add(time.Hour)}
	calls := map[string]func() error{
		"charge":  func() error { return chargeErr(t, l) },
		"keyed":   func() error { return only(l.Charge(ctx, keyed)) },
		"reserve": func() error { return only(l.Reserve(ctx, reserveOf("default.r", 1, time.Hour))) },
		"extend":  func() error { return only(l.Extend(ctx, extendOf("default.open"))) },
		"settle":  func() error { return only(l.Settle(ctx, settleOf("default.open", 1))) },
		"adjust":  func() error { return only(l.Adjust(ctx, adjustOf("k", -1))) },
		"check":   func() error { return only(l.Check(ctx, "k", "default", false)) },
		"suspend": func() error { return l.Suspend(ctx, suspended) },
	}
	var all sync.WaitGroup
	for name, call := range calls {
		for range 5 {
			all.Go(func() {
				if err := call(); !errors.Is(err, quota.ErrLedgerUnusable) || !says(err, "out of memory") {
					t.Errorf("%s: got %v", name, err)
				}
			})
		}
	}
	all.Wait()
	l.client.ConfigSet(t.Context(), "maxmemory", "0")
	if after := dump(t, l.client, "k"); after != before {
		t.Errorf("changed:\n%s\nwas\n%s", after, before)
	}
}

// TestStoppedProcess: a process that is stopped between its snapshot and its commit decides again
// if the bucket has changed meanwhile.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	tomorrow := start.Add(24 * time.Hour) // a new day in which the 5 are still held
	suspended := quota.Suspension{Credential: "k", Bucket: "default", Until: start.Add(time.Hour)}
	for name, meanwhile := range map[string]func(s *redistest.Server, other *env){
		"a charge": func(_ *redistest.Server, l *env) { allow(t, l, one("k", 90)) },
		"a hold": func(_ *redistest.Server, l *env) {
			setAside(t, l, reserveOf("default.other", 90, time.Hour))
		},
		"a suspension": func(_ *redistest.Server, l *env) {
			noError(t, l.Suspend(t.Context(), suspended))
		},
		"time": func(s *redistest.Server, _ *env) { s.SetNow(t, tomorrow) },
	} {
		t.Run(name, func(t *testing.T) {
			s, l := clocked(t)
			other := openEnv(t, s.URL())
			allow(t, l, one("k", 5))
			decided := l.meanwhile(func() { meanwhile(s, other) })
			d, err := l.Reserve(t.Context(), reserveOf("default.r", 20, time.Hour))
			if err != nil || d.Allowed != (name == "time") {
				t.Errorf("20 beside %s: %+v, %v", name, d, err)
			}
			if name == "time" && (*decided != 2 || !d.At.Equal(tomorrow)) {
				t.Errorf("decided %d times, at %s", *decided, d.At)
			}
		})
	}
}

// TestCallerLeaves: a caller whose context ends gets an error while the server may still decide.
// The error of a charge never says that it was not executed, because a stopped server may execute
// it later.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l := openEnv(t, s.URL())
	allow(t, l, one("k", 1))
	noError(t, syscall.Kill(s.PID(), syscall.SIGSTOP))
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			ctx, done := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer done()
			var err error
			if n%2 == 0 {
				_, err = l.Charge(ctx, one("k", 1))
			} else {
				_, err = l.Reserve(ctx, reserveOf(fmt.Sprintf("default.r%d", n), 1, time.Hour))
			}
			if err == nil || n%2 == 0 && errors.Is(err, quota.ErrNotExecuted) {
				t.Errorf("call to a stopped server: %v", err)
			}
		})
	}
	all.Wait()
	noError(t, syscall.Kill(s.PID(), syscall.SIGCONT))
	eventually(t, "the ledger works again", func() bool { return chargeErr(t, l) == nil })
	sound(t, l)
}

// TestSentinelFailover: after Sentinel promotes the replica, the ledger uses it, with all charges.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	at := func(args ...string) *redistest.Server {
		return redistest.Start(t, redistest.Options{Args: args})
	}
	primary := at("--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(primary.Addr)
	r := admin(t, at("--replicaof", host, port).Addr)
	replication := func(what string) bool {
		return strings.Contains(r.Info(t.Context(), "replication").Val(), what)
	}
	eventually(t, "the replica follows", func() bool { return replication("master_link_status:up") })
	sentinel := redistest.Start(t, redistest.Options{Sentinel: fmt.Sprintf(
		"sentinel monitor main %s %s 1\nsentinel down-after-milliseconds main 1500\n"+
			"sentinel failover-timeout main 3000\n", host, port)})
	l := openEnv(t, "redis+sentinel://"+sentinel.Addr+"/main")
	if n := allowedOf(t, l, 40); n != 40 {
		t.Fatalf("allowed %d of 40", n)
	}
	setAside(t, l, reserveOf("default.r", 10, time.Hour))
	s := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr})
	defer s.Close()
	eventually(t, "the replica has the log and sentinel knows of it", func() bool {
		known, _ := s.Replicas(t.Context(), "main").Result()
		return r.HLen(t.Context(), holdsOfK).Val() == 1 && len(known) == 1
	})
	primary.Kill()
	if _, err := l.Usage(t.Context(), "k", hundred); err != nil &&
		!errors.Is(err, quota.ErrUnreachable) {
		t.Errorf("meanwhile: %v", err)
	}
	eventually(t, "the replica takes writes", func() bool { return replication("role:master") })
	promoted := time.Now()
	eventually(t, "the ledger works again", func() bool {
		_, err := l.Usage(t.Context(), "k", hundred)
		return err == nil
	})
	t.Logf("the ledger was back %v after the failover", time.Since(promoted))
	if n := allowedOf(t, l, 100); n != 50 {
		t.Errorf("allowed %d after the failover, want the 50 that were left", n)
	}
}
