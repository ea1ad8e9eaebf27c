package daemon_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestCommand_Once: of several daemons one runs each tick.
func TestCommand_Once(t *testing.T) {
	atNoon(t, func(w *env) {
		for range 3 {
			p := w.open()
			p.job("a", "*/10 * * * *", 1, "echo ran >> $OUT")
			p.job("b", "*/10 * * * *", 1, "echo ran >> $OUT")
			p.start()
		}
		time.Sleep(51 * time.Minute)
		for _, name := range []string{"a", "b"} {
			w.expect(len(strings.Fields(w.wrote(name))), 6, "runs of", name)
		}
	})
}

// slowly is a ledger that is slow to return claims.
type slowly struct{ quota.Claims }

func (s slowly) Claim(ctx context.Context, c quota.Claim) (quota.ClaimState, error) {
	state, err := s.Claims.Claim(ctx, c)
	time.Sleep(20 * time.Millisecond)
	return state, err
}

// TestCommand_StartTogether: if several daemons start at once, they do not run a tick that came
// before any daemon ran.
func TestCommand_StartTogether(t *testing.T) {
	atNoon(t, func(w *env) {
		for range 3 {
			p := w.open()
			p.job("a", "*/10 * * * *", 1, "echo ran >> $OUT")
			p.config.Claims = slowly{p.config.Claims}
			p.start()
		}
		time.Sleep(500 * time.Millisecond) // the next tick comes a second after the start
		w.expect(w.wrote("a"), "", "before the first tick")
	})
}

// stalls is the ledger of a process that stands still for minutes, like a paused virtual machine,
// after it has made the claim whose name has a prefix.
type stalls struct {
	quota.Claims
	after string
	until atomic.Int64 // in Unix ns
}

func (s *stalls) Claim(ctx context.Context, c quota.Claim) (quota.ClaimState, error) {
	time.Sleep(time.Until(time.Unix(0, s.until.Load())))
	state, err := s.Claims.Claim(ctx, c)
	if strings.HasPrefix(c.Name, s.after) {
		s.until.CompareAndSwap(0, time.Now().Add(5*time.Minute).UnixNano())
		time.Sleep(time.Until(time.Unix(0, s.until.Load())))
	}
	return state, err
}

// TestCommand_Stalled: whenever a daemon stands still for longer than its leases, a job without
// retry: runs at most once per tick.
func TestCommand_Stalled(t *testing.T) {
	const left = "tick left out: its run was lost in a crash, and retry: is 0"
	for after, begun := range map[string]int{"a": 0, "a/": 0, "begun/": 1, "job:": 1} {
		t.Run("after "+after, func(t *testing.T) {
			atNoon(t, func(w *env) {
				first, second := w.pair()
				first.config.Claims = &stalls{Claims: first.config.Claims, after: after}
				for _, p := range []*proc{first, second} { // a job uses its process's Claims
					p.job("a", "0 * * * *", 1, "echo ran >> $OUT")
				}
				first.start()
				time.Sleep(1500 * time.Millisecond) // first claims the tick before second starts
				second.start()
				time.Sleep(20 * time.Minute)
				first.end()
				second.end()
				got := w.wrote("a")
				if got != "ran" && (got != "" || begun == 0) {
					t.Errorf("a wrote %q", got)
				}
				w.expectLogged(begun, left)
			})
		})
	}
}

// unmarkable is a ledger that cannot mark ticks done for the first minute.
type unmarkable struct {
	quota.Claims
	until time.Time
}

func (u unmarkable) Finish(ctx context.Context, c quota.Claim, done bool) error {
	if done && time.Now().Before(u.until) {
		return errDead
	}
	return u.Claims.Finish(ctx, c, done)
}

// TestCommand_Unmarked: a tick whose end could not be recorded in the ledger is not run again by
// the daemon that ran it.
func TestCommand_Unmarked(t *testing.T) {
	for _, code := range []string{"0", "3"} {
		t.Run("exit "+code, func(t *testing.T) {
			atNoon(t, func(w *env) {
				p := w.open()
				p.job("a", "0 * * * *", 1, "echo ran >> $OUT; exit "+code)
				p.config.Claims = unmarkable{p.config.Claims, noon.Add(time.Minute)}
				p.start().stopAfter(30 * time.Minute)
				w.expect(w.wrote("a"), "ran")
				w.expectLogged(1, "tick=a/", "exit_code="+code)
			})
		})
	}
}

// TestCommand_NotStarted: a tick that a daemon gives back before its command has started is run by
// the next daemon, even without retry:.
func TestCommand_NotStarted(t *testing.T) {
	atNoon(t, func(w *env) {
		first, second := w.pair()
		delay(first.job("a", "0 * * * *", 1, "echo ran >> $OUT"), time.Hour)
		second.job("a", "0 * * * *", 1, "echo ran >> $OUT")
		first.start().stopAfter(10 * time.Second)
		w.expectLogged(1, "tick given back")
		second.start().stopAfter(10 * time.Minute)
		w.expect(w.wrote("a"), "ran")
	})
}
