package redisledger

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// broken are ledgers behind a proxy that can lose an answer, by the kind of URL.
func broken(t *testing.T) map[string]func(*testing.T) (string, *redistest.Breaker) {
	t.Helper()
	return map[string]func(*testing.T) (string, *redistest.Breaker){
		"server": func(t *testing.T) (string, *redistest.Breaker) {
			b := redistest.NewBreaker(t)
			b.Forward(redistest.Start(t, redistest.Options{}).Addr)
			return "redis://" + b.Addr, b
		},
		"sentinel": func(t *testing.T) (string, *redistest.Breaker) {
			b := redistest.NewBreaker(t)
			b.Forward(redistest.Start(t, redistest.Options{}).Addr)
			host, port, _ := net.SplitHostPort(b.Addr)
			s := redistest.Start(t, redistest.Options{
				Sentinel: fmt.Sprintf("sentinel monitor main %s %s 1\n", host, port),
			})
			return "redis+sentinel://" + s.Addr + "/main", b
		},
		"cluster": func(t *testing.T) (string, *redistest.Breaker) {
			b := redistest.NewBreaker(t)
			_, port, _ := net.SplitHostPort(b.Addr)
			s := redistest.Start(t, redistest.Options{
				Node: true, Args: []string{"--cluster-announce-port", port},
			})
			b.Forward(s.Addr)
			c := redis.NewClient(&redis.Options{Addr: s.Addr})
			defer c.Close()
			if err := c.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the cluster is ready", func() bool {
				_, err := c.Get(t.Context(), "any").Result()
				return errors.Is(err, redis.Nil)
			})
			return "redis+cluster://" + b.Addr, b
		},
	}
}

// A call whose answer is lost says so, and the server has run it once: no client sends it again,
// since that would charge twice, or find what it has just released or finished gone.
func TestLostAnswerIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	for kind, start := range broken(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url, b := start(t)
			l := open(t, url)
			for name, call := range losable(t, l) {
				before := b.Ran()
				b.LoseNext()
				if err := call(); !errors.Is(err, quota.ErrUnreachable) {
					t.Errorf("%s: got %v, want ErrUnreachable", name, err)
				}
				if ran := b.Ran() - before; ran != 1 {
					t.Errorf("%s: run %d times", name, ran)
				}
			}
			if n := len(entriesOf(t, l, "k")); n != 3 {
				t.Errorf("%d entries; want the charge, the draw and the commit", n)
			}
			held, err := l.Reservations(t.Context(), "k", "default")
			if err != nil || len(held) != 2 {
				t.Errorf("held %+v, %v; want what was reserved and drawn on", held, err)
			}
		})
	}
}

// losable is each call that runs a script, on what it needs.
func losable(t *testing.T, l *Ledger) map[string]func() error {
	t.Helper()
	cancelled := one("k", 7)
	d := allow(t, l, cancelled)
	for _, id := range []string{"drawn", "committed", "released"} {
		setAside(t, l, reserveOf("default."+id, 5, time.Hour))
	}
	claim := func(name string) quota.Claim {
		return quota.Claim{Credential: "k", Name: name, Holder: "h", TTL: time.Minute}
	}
	for _, name := range []string{"done", "given back"} {
		if _, err := l.Claim(t.Context(), claim(name)); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]func() error{
		"charge": func() error { _, err := l.Charge(t.Context(), one("k", 1)); return err },
		"reserve": func() error {
			_, err := l.Reserve(t.Context(), reserveOf("default.reserved", 5, time.Hour))
			return err
		},
		"draw": func() error {
			c := one("k", 2)
			c.Reservation = "default.drawn"
			_, err := l.Charge(t.Context(), c)
			return err
		},
		"commit": func() error {
			_, err := l.Commit(t.Context(), quota.Commit{
				Credential: "k", Reservation: "default.committed", ID: "c", Units: 3, Limits: hundred,
			})
			return err
		},
		"release": func() error { _, err := l.Release(t.Context(), "k", "default.released"); return err },
		"cancel":  func() error { return l.Cancel(t.Context(), cancelled, d) },
		"suspend": func() error {
			return l.Suspend(t.Context(), "other", "default", time.Now().Add(time.Hour))
		},
		"usage":     func() error { _, err := l.Usage(t.Context(), "k", hundred); return err },
		"claim":     func() error { _, err := l.Claim(t.Context(), claim("claimed")); return err },
		"done":      func() error { return l.Finish(t.Context(), claim("done"), true) },
		"give back": func() error { return l.Finish(t.Context(), claim("given back"), false) },
	}
}
