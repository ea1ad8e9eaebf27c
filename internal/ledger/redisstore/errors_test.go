package redisstore_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redisstore"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// TestServersInTrouble: an error of a server in the middle of its work says what to do about it.
func TestServersInTrouble(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		trouble func(*testing.T) *env
		is      error
		says    string
	}{
		"became a replica": {func(t *testing.T) *env {
			l := openEnv(t, redistest.Start(t, redistest.Options{}).URL())
			do(t, l.client, "replicaof", "127.0.0.1", "1")
			return l
		}, quota.ErrLedgerUnusable, "name the primary"},
		"a replica that serves nothing": {func(t *testing.T) *env {
			args := []string{"--replica-serve-stale-data", "no"}
			s := redistest.Start(t, redistest.Options{Args: args})
			l := openEnv(t, s.URL())
			do(t, l.client, "replicaof", "127.0.0.1", "1")
			return l
		}, quota.ErrUnreachable, "a replica that has lost its primary"},
		"loads its data": {func(t *testing.T) *env {
			args := []string{"--key-load-delay", "300"}
			s := redistest.Start(t, redistest.Options{AOF: true, Args: args})
			l := openEnv(t, s.URL())
			do(t, l.client, "eval", "for i = 1, 10000 do redis.call('SET', i, i) end return 1", "0")
			s.Kill()
			s.Begin(t)
			return l
		}, quota.ErrUnreachable, "loading its data"},
		"node without its slot": {func(t *testing.T) *env {
			return openEnv(t, redistest.Start(t, redistest.Options{Node: true}).URL())
		}, quota.ErrLedgerUnusable, "write redis+cluster://"},
		"node that names another": {func(t *testing.T) *env {
			for _, n := range redistest.StartCluster(t, 2).Masters {
				if l := openEnv(t, n.URL()); strings.Contains(fmt.Sprint(chargeErr(t, l)), "MOVED") {
					return l
				}
			}
			t.Fatal("no node names another")
			return nil
		}, quota.ErrLedgerUnusable, "write redis+cluster://"},
		"cluster that is down": {func(t *testing.T) *env {
			c := redistest.StartCluster(t, 2)
			l := openEnv(t, "redis+cluster://"+c.Masters[0].Addr)
			for _, n := range c.Masters {
				do(t, c.Admin(n), "cluster", "flushslots")
			}
			return l
		}, quota.ErrUnreachable, "the cluster is down"},
		"a password set later": {func(t *testing.T) *env {
			s := redistest.Start(t, redistest.Options{})
			l := openEnv(t, s.URL())
			do(t, l.client, "config", "set", "requirepass", "canary-password")
			do(t, l.client, "client", "kill", "type", "normal", "skipme", "no")
			return l
		}, quota.ErrLedgerUnusable, "asks for a password"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := test.trouble(t)
			var err error
			eventually(t, test.says, func() bool {
				err = chargeErr(t, l)
				return strings.Contains(fmt.Sprint(err), test.says)
			})
			isError(t, err, test.is, test.says)
		})
	}
}

// Redis 5 and 6 wrap the error that a script met; the words are those of Redis 6.0.16.
func TestErrorsOfEarlierServers(t *testing.T) {
	const call = "ERR Error running script (call to f_cb32128315c943afdd4d3fbf11a7f30b0caba157): "
	for text, code := range map[string]string{
		call + "@user_script:378: WRONGTYPE Operation against a key holding the wrong kind of " +
			"value": "WRONGTYPE",
		call + "@user_script:1: @user_script: 1: -OOM command not allowed when used memory > " +
			"'maxmemory'.": "OOM",
		call + "@user_script:1: @user_script: 1: -READONLY You can't write against a read only " +
			"replica.": "READONLY",
		call + "@user_script:1: @user_script: 1: This Redis command is not allowed from " +
			"scripts": "ERR",
		"WRONGTYPE Operation against a key holding the wrong kind of value": "WRONGTYPE",
	} {
		if got := redisstore.CodeOfReply(errors.New(text)); got != code {
			t.Errorf("%s: %s, want %s", text, got, code)
		}
	}
}

func chargeErr(t *testing.T, l *env) error { return only(l.Charge(t.Context(), one("k", 1))) }

// only returns the error of a call.
func only[T any](_ T, err error) error { return err }

// admin is a client that may do anything.
func admin(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { c.Close() })
	return c
}

// serveAll gives a cluster's only node every slot.
func serveAll(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	must(t, c.ClusterAddSlotsRange(t.Context(), 0, 16383))
	eventually(t, "the cluster is ready", func() bool {
		return errors.Is(c.Get(t.Context(), "any").Err(), redis.Nil)
	})
}

// do sends a command; an error is one that a broken connection may leave.
func do(t *testing.T, c redis.UniversalClient, args ...any) {
	t.Helper()
	err := c.Do(t.Context(), args...).Err()
	if _, is := errors.AsType[redis.Error](err); is {
		t.Fatal(args, err)
	}
}

// broken returns the URL of a ledger behind a proxy that can lose an answer.
func broken(t *testing.T, kind string) (string, *redistest.Breaker) {
	t.Helper()
	b := redistest.NewBreaker(t)
	host, port, _ := net.SplitHostPort(b.Addr)
	opts := redistest.Options{Node: kind == "cluster"}
	if opts.Node {
		opts.Args = []string{"--cluster-announce-port", port}
	}
	server := redistest.Start(t, opts)
	b.Forward(server.Addr)
	switch kind {
	case "sentinel":
		s := redistest.Start(t, redistest.Options{
			Sentinel: fmt.Sprintf("sentinel monitor main %s %s 1\n", host, port)})
		return "redis+sentinel://" + s.Addr + "/main", b
	case "cluster":
		serveAll(t, admin(t, server.Addr))
		return "redis+cluster://" + b.Addr, b
	}
	return "redis://" + b.Addr, b
}

// TestLostAnswerIsNotAskedForAgain: a call whose answer is lost returns an error, and the server
// has run it once. No client sends it again: that would charge twice, or not find what the first
// attempt has released or finished.
func TestLostAnswerIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"server", "sentinel", "cluster"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url, b := broken(t, kind)
			l := openEnv(t, url)
			for _, c := range losable(t, l) {
				before := b.Ran()
				b.LoseNext()
				if err := c.run(); !errors.Is(err, quota.ErrUnreachable) {
					t.Errorf("%s: got %v, want ErrUnreachable", c.name, err)
				}
				if ran := b.Ran() - before; ran != 1 {
					t.Errorf("%s: run %d times", c.name, ran)
				}
			}
			if n := len(entriesOf(t, l, "k")); n != 4 {
				t.Errorf("%d entries; want the charge, the draw, what was settled, added", n)
			}
			held, err := l.Reservations(t.Context(), "k", "default")
			if err != nil || len(held) != 2 {
				t.Errorf("held %+v, %v; want what was reserved and drawn on", held, err)
			}
		})
	}
}

// lostCall is a call that runs a script whose answer is lost.
type lostCall struct {
	name string
	run  func() error
}

// losable returns each call that runs a script, in an order in which charge.lua records the first
// charge and leaves the second to Go: after Learn the bucket needs the rule.
func losable(t *testing.T, l *env) []lostCall {
	t.Helper()
	ctx, cancelled, drawing := t.Context(), one("k", 7), one("k", 2)
	d := allow(t, l, cancelled)
	drawing.Reservation = "default.drawn"
	for _, id := range []string{"drawn", "committed", "released"} {
		setAside(t, l, reserveOf("default."+id, 5, time.Hour))
	}
	claim := func(name string) quota.Claim {
		return quota.Claim{Credential: "k", Name: name, Holder: "h", TTL: time.Minute}
	}
	for _, name := range []string{"done", "given back"} {
		noError(t, only(l.Claim(ctx, claim(name))))
	}
	learned := quota.Learn{Credential: "k", Limit: hundred[0], Remaining: 20}
	suspended := quota.Suspension{Credential: "other", Bucket: "default",
		Until: time.Now().Add(time.Hour)}
	return []lostCall{
		{"charge", func() error { return chargeErr(t, l) }},
		{"reserve", func() error {
			return only(l.Reserve(ctx, reserveOf("default.reserved", 5, time.Hour)))
		}},
		{"draw", func() error { return only(l.Charge(ctx, drawing)) }},
		{"settle", func() error { return only(l.Settle(ctx, settleOf("default.committed", 3))) }},
		{"learn", func() error { return only(l.Learn(ctx, learned)) }},
		{"charge left to Go", func() error { return chargeErr(t, l) }},
		{"extend", func() error { return only(l.Extend(ctx, extendOf("default.drawn"))) }},
		{"release", func() error { return only(l.Release(ctx, released("default.released"))) }},
		{"cancel", func() error { return l.Cancel(ctx, cancelled, d) }},
		{"adjust", func() error { return only(l.Adjust(ctx, adjustOf("k", 2))) }},
		{"suspend", func() error { return l.Suspend(ctx, suspended) }},
		{"claim", func() error { return only(l.Claim(ctx, claim("claimed"))) }},
		{"done", func() error { return l.Finish(ctx, claim("done"), true) }},
		{"give back", func() error { return l.Finish(ctx, claim("given back"), false) }},
	}
}
