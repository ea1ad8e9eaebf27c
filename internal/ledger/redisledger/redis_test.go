package redisledger

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

var hundred = []quota.Limit{{Bucket: "default", Units: 100, Window: quota.Sliding(24 * time.Hour)}}

func open(t testing.TB, url string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func one(credential string, units int64) quota.Charge {
	return quota.Charge{Credential: credential, ID: quota.NewID(time.Now()), Limits: hundred,
		Costs: []quota.Cost{{Bucket: "default", Units: units}}, Labels: quota.Labels{"method": "m"}}
}

// allowedOf charges n times, one unit each, and counts what was allowed.
func allowedOf(t *testing.T, l *Ledger, n int) (allowed int) {
	t.Helper()
	for range n {
		d, err := l.Charge(t.Context(), one("k", 1))
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			allowed++
		}
	}
	return allowed
}

func TestScriptFlushInMidRun(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	var wg sync.WaitGroup
	var allowed atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if d, err := l.Charge(t.Context(), one("k", 1)); err != nil {
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

func TestKilledServerForgetsNothing(t *testing.T) {
	s := redistest.Start(t, redistest.Options{AOF: true})
	l := open(t, s.URL())
	before := allowedOf(t, l, 60)
	reserved, err := l.Reserve(t.Context(), quota.Reserve{Credential: "k", ID: "default.r", Units: 10, TTL: time.Hour, Limits: hundred})
	if err != nil || !reserved.Allowed {
		t.Fatal(reserved, err)
	}
	s.Kill()
	if _, err := l.Charge(t.Context(), one("k", 1)); !errors.Is(err, quota.ErrUnreachable) {
		t.Errorf("a dead server: got %v, want ErrUnreachable", err)
	}
	s.Restart(t)
	if after := allowedOf(t, l, 60); before != 60 || after != 30 {
		t.Errorf("allowed %d, then %d after the restart; want 60, 30 with 10 held", before, after)
	}
	if d, err := l.Charge(t.Context(), func() quota.Charge { c := one("k", 10); c.Reservation = "default.r"; return c }()); err != nil || !d.Allowed {
		t.Errorf("draw on a reservation made before the restart: %+v, %v", d, err)
	}
}

// A clock that jumps far ahead lets every key lapse, in whatever order the server forgets them; the
// log begins anew at that time, and when the clock comes back, time stands still in it rather than
// running backwards.
func TestClockJumpsFarAhead(t *testing.T) {
	s := redistest.Start(t, redistest.Options{Clock: true})
	l := open(t, s.URL())
	start := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	s.SetNow(t, start)
	reserve := quota.Reserve{Credential: "k", ID: "default.r", Units: 30, TTL: time.Hour, Limits: hundred}
	if d, err := l.Reserve(t.Context(), reserve); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	if n := allowedOf(t, l, 100); n != 70 {
		t.Errorf("at first: allowed %d beside 30 held", n)
	}
	s.SetNow(t, start.AddDate(2, 0, 0))
	if _, err := l.Release(t.Context(), "k", "default.r"); !errors.Is(err, quota.ErrNoReservation) {
		t.Errorf("the reservation has lapsed: %v", err)
	}
	if n := allowedOf(t, l, 150); n != 100 {
		t.Errorf("two years on: allowed %d", n)
	}
	s.SetNow(t, start)
	if n := allowedOf(t, l, 10); n != 0 {
		t.Errorf("back again: allowed %d more in a day that is full", n)
	}
	entries, err := l.Entries(t.Context(), quota.Query{Credential: "k", Bucket: "default"})
	if err != nil || len(entries) != 100 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// A cancellation while the state is lost leaves the log, with its time to live.
func TestCancelWithoutState(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	allowedOf(t, l, 60)
	c := one("k", 1)
	d, err := l.Charge(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	l.client.Del(t.Context(), stateKey("k", "default"))
	if err := l.Cancel(t.Context(), c, d); err != nil {
		t.Fatal(err)
	}
	if ttl := l.client.TTL(t.Context(), logKey("k", "default")).Val(); ttl < quota.Retention {
		t.Errorf("the log lapses in %v", ttl)
	}
	if n := allowedOf(t, l, 100); n != 40 {
		t.Errorf("allowed %d more of the 40 left", n)
	}
}

// Many small entries, then few large ones: the search for the entry that must leave does not walk
// through them one by one.
func TestSkewedLog(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	limits := []quota.Limit{{Bucket: "default", Units: 1_010_000_000, Window: quota.Sliding(24 * time.Hour)}}
	for i := range 3000 {
		c := one("k", 1)
		if i >= 2000 {
			c.Costs[0].Units = 1_000_000
		}
		c.Limits = limits
		if d, err := l.Charge(t.Context(), c); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	used, err := l.Usage(t.Context(), "k", limits)
	if err != nil {
		t.Fatal(err)
	}
	limits[0].Units = used.Buckets[0].Limits[0].Used
	entries, _ := l.Entries(t.Context(), quota.Query{Credential: "k", Bucket: "default"})
	for _, units := range []int64{1, 7, 1000, 1999, 2000, 2001, 5_000_000} {
		l.client.ConfigResetStat(t.Context())
		c := one("k", units)
		c.Limits = limits
		d, err := l.Charge(t.Context(), c)
		if err != nil || d.Allowed {
			t.Fatal(d, err)
		}
		first := slices.IndexFunc(entries, func(e quota.Entry) bool { return e.Total >= units })
		if want := entries[first].At.Add(24 * time.Hour); !d.RetryAt.Equal(want) {
			t.Errorf("%d units: retry at %v, want %v", units, d.RetryAt, want)
		}
		_, after, _ := strings.Cut(parseInfo(l.client.Info(t.Context(), "commandstats").Val())["cmdstat_zrange"], "calls=")
		if calls, _, _ := strings.Cut(after, ","); len(calls) > 2 {
			t.Errorf("%d units: %s probes", units, calls)
		}
	}
}

// Without the hash the log says what was charged. Without the log nothing does, until what was in
// it would have left every window.
func TestHalfOfABucketLost(t *testing.T) {
	s := redistest.Start(t, redistest.Options{Clock: true})
	start := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	s.SetNow(t, start)
	l := open(t, s.URL())
	allowedOf(t, l, 70)
	l.client.Del(t.Context(), stateKey("k", "default"))
	if n := allowedOf(t, l, 50); n != 30 {
		t.Errorf("without its state: allowed %d more of the 30 left", n)
	}
	l.client.Del(t.Context(), logKey("k", "default"))
	for _, after := range []time.Duration{0, quota.Retention} {
		s.SetNow(t, start.Add(after))
		if _, err := l.Charge(t.Context(), one("k", 1)); !errors.Is(err, quota.ErrLedgerUnusable) {
			t.Errorf("without its log, after %v: %v", after, err)
		}
	}
	s.SetNow(t, start.Add(quota.Retention+time.Second))
	if n := allowedOf(t, l, 150); n != 100 {
		t.Errorf("without its log, later than entries are kept: allowed %d, want 100", n)
	}
	entries, err := l.Entries(t.Context(), quota.Query{Credential: "k", Bucket: "default", Limit: 1})
	if err != nil || len(entries) != 1 || entries[0].Total != 200 {
		t.Errorf("newest entry %+v, %v: the total went back", entries, err)
	}
	for _, key := range []string{logKey("k", "default"), stateKey("k", "default")} {
		if ttl := l.client.TTL(t.Context(), key).Val(); ttl < quota.Retention {
			t.Errorf("%s lapses in %v", key, ttl)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	primary := redistest.Start(t, redistest.Options{})
	host, port, _ := net.SplitHostPort(primary.Addr)
	password := redistest.Start(t, redistest.Options{Args: []string{"--requirepass", "canary-password"}})
	for _, test := range []struct {
		name, url string
		is        error
		says      string
	}{
		{"password", password.URL(), quota.ErrLedgerUnusable, "asks for a password"},
		{"wrong password", strings.Replace(password.URL(), "redis://", "redis://:wrong-canary@", 1), quota.ErrLedgerUnusable, "refused the user or the password"},
		{"replica", redistest.Start(t, redistest.Options{Args: []string{"--replicaof", host, port}}).URL(), quota.ErrLedgerUnusable, "is a replica"},
		{"evicts", redistest.Start(t, redistest.Options{Args: []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}}).URL(), quota.ErrLedgerUnusable, "would forget charges"},
		{"too old", "redis://" + oldServer(t), quota.ErrLedgerUnusable, "4.0.14 is too old"},
		{"nobody", "redis://127.0.0.1:1", quota.ErrUnreachable, "refused"},
		{"bad URL", "redis://:secret-canary@host:port", quota.ErrMalformed, "write redis://"},
		{"no master", "redis+sentinel://host:26379", quota.ErrMalformed, "master"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Open(t.Context(), test.url)
			if !errors.Is(err, test.is) || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("got %v\nwant %v that says %q", err, test.is, test.says)
			}
			if strings.Contains(fmt.Sprint(err), "canary") {
				t.Errorf("the password is in the error: %v", err)
			}
		})
	}
	if l := open(t, strings.Replace(password.URL(), "redis://", "redis://:canary-password@", 1)); l == nil {
		t.Error("the right password does not open")
	}
}

// oldServer answers INFO as Redis 4 does: no such server can be had any more.
func oldServer(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	info := "# Server\r\nredis_version:4.0.14\r\nrole:master\r\n"
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				lines := bufio.NewScanner(conn)
				for lines.Scan() {
					if strings.HasPrefix(lines.Text(), "*") { // the command's name is two lines further on
						lines.Scan()
						lines.Scan()
						if strings.EqualFold(lines.Text(), "info") {
							fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(info), info)
						} else {
							fmt.Fprint(conn, "-ERR unknown command\r\n")
						}
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}

func TestOutOfMemoryChangesNothing(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	allowedOf(t, l, 10)
	before := dump(t, l.client, "k")
	l.client.ConfigSet(t.Context(), "maxmemory", "1mb")
	charge := one("k", 1)
	charge.Key = "once"
	calls := map[string]func() error{
		"charge": func() error { _, err := l.Charge(t.Context(), charge); return err },
		"reserve": func() error {
			_, err := l.Reserve(t.Context(), quota.Reserve{Credential: "k", ID: "default.r", Units: 1, TTL: time.Hour, Limits: hundred})
			return err
		},
		"suspend": func() error { return l.Suspend(t.Context(), "k", "default", time.Now().Add(time.Hour)) },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, quota.ErrLedgerUnusable) || !strings.Contains(err.Error(), "out of memory") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	l.client.ConfigSet(t.Context(), "maxmemory", "0")
	if after := dump(t, l.client, "k"); after != before {
		t.Errorf("changed:\n%s\nwas\n%s", after, before)
	}
}

// dump is everything a credential has in the store, as text.
func dump(t testing.TB, client redis.UniversalClient, credential string) string {
	t.Helper()
	ctx := context.Background()
	keys, err := client.Keys(ctx, prefix(credential)+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string, len(keys))
	for _, key := range keys {
		all[key] = fmt.Sprintf("%q until %v", client.Dump(ctx, key).Val(), client.Do(ctx, "PEXPIRETIME", key).Val())
	}
	return fmt.Sprint(all)
}

// Sentinel makes the replica the primary; the ledger finds it and knows what was charged.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t, redistest.Options{Args: []string{"--repl-diskless-sync-delay", "0"}})
	host, port, _ := net.SplitHostPort(primary.Addr)
	replica := redistest.Start(t, redistest.Options{Args: []string{"--replicaof", host, port}})
	r := redis.NewClient(&redis.Options{Addr: replica.Addr})
	defer r.Close()
	says := func(what string) bool { return strings.Contains(r.Info(t.Context(), "replication").Val(), what) }
	eventually(t, "the replica follows", func() bool { return says("master_link_status:up") })
	sentinel := redistest.Start(t, redistest.Options{Sentinel: fmt.Sprintf(
		"sentinel monitor main %s %s 1\nsentinel down-after-milliseconds main 300\nsentinel failover-timeout main 3000\n", host, port)})
	l := open(t, "redis+sentinel://"+sentinel.Addr+"/main")
	if n := allowedOf(t, l, 40); n != 40 {
		t.Fatalf("allowed %d of 40", n)
	}
	s := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr})
	defer s.Close()
	eventually(t, "the replica has the log and sentinel knows of it", func() bool {
		known, _ := s.Replicas(t.Context(), "main").Result()
		return r.ZCard(t.Context(), logKey("k", "default")).Val() == 40 && len(known) == 1
	})
	primary.Kill()
	if _, err := l.Usage(t.Context(), "k", hundred); err != nil && !errors.Is(err, quota.ErrUnreachable) {
		t.Errorf("meanwhile: %v", err)
	}
	eventually(t, "the replica takes writes", func() bool { return says("role:master") })
	promoted := time.Now()
	eventually(t, "the ledger works again", func() bool {
		_, err := l.Usage(t.Context(), "k", hundred)
		return err == nil
	})
	t.Logf("the ledger was back %v after the failover", time.Since(promoted))
	if n := allowedOf(t, l, 100); n != 60 {
		t.Errorf("allowed %d after the failover, want the 60 that were left", n)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in 60 s: %s", what)
		}
	}
}

// Codes are short, so two lines of labels may share one; each entry keeps its own labels all the
// same. What the server loses is whole again once the line is told anew.
func TestLabelsWithOneCode(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	seen, pair := map[string]string{}, []string(nil)
	for i := 0; pair == nil; i++ {
		region := fmt.Sprintf("r%d", i)
		code := codeOf(quota.Labels{"region": region}.Encode())
		if other, ok := seen[code]; ok {
			pair = []string{other, region}
		}
		seen[code] = region
	}
	for range 3 {
		for _, region := range pair {
			c := one("k", 1)
			c.Labels = quota.Labels{"region": region, "run": "r 1"}
			if _, err := l.Charge(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	regions := func() (list []string) {
		entries, err := l.Entries(t.Context(), quota.Query{Credential: "k", Bucket: "default"})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Labels["run"] != "r 1" {
				t.Errorf("labels %v: the run is missing", e.Labels)
			}
			list = append(list, e.Labels["region"])
		}
		return list
	}
	want := []string{pair[0], pair[1], pair[0], pair[1], pair[0], pair[1]}
	if got := regions(); !slices.Equal(got, want) {
		t.Errorf("regions %q, want %q", got, want)
	}
	l.client.Del(t.Context(), labelsKey("k"))
	c := one("k", 1)
	c.Labels = quota.Labels{"region": pair[0], "run": "r 1"}
	if _, err := open(t, s.URL()).Charge(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := regions(); !slices.Equal(got, append(want, pair[0])) {
		t.Errorf("after the labels were lost and told again: regions %q", got)
	}
}
