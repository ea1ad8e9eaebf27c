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

// allow makes a charge that is allowed.
func allow(t testing.TB, l *Ledger, c quota.Charge) quota.Decision {
	t.Helper()
	d, err := l.Charge(t.Context(), c)
	if err != nil || !d.Allowed {
		t.Errorf("charge of %v: %+v, %v", c.Costs, d, err)
	}
	return d
}

func reserveOf(id string, units int64, ttl time.Duration) quota.Reserve {
	return quota.Reserve{Credential: "k", ID: id, TTL: ttl, Limits: hundred,
		Costs: []quota.Cost{{Bucket: "default", Units: units}}}
}

// settleOf is what was used of a reservation in the bucket "default".
func settleOf(reservation string, units int64) quota.Settle {
	return quota.Settle{Credential: "k", Reservation: reservation, ID: "c", Limits: hundred,
		Costs: []quota.Cost{{Bucket: "default", Units: units}}}
}

// extendOf asks for two hours more.
func extendOf(reservation string) quota.Extend {
	return quota.Extend{Credential: "k", Reservation: reservation, TTL: 2 * time.Hour}
}

// setAside makes a reservation that is allowed.
func setAside(t testing.TB, l *Ledger, r quota.Reserve) {
	t.Helper()
	if d, err := l.Reserve(t.Context(), r); err != nil || !d.Allowed {
		t.Fatalf("reserve: %+v, %v", d, err)
	}
}

// entriesOf is the log of the bucket "default".
func entriesOf(t testing.TB, l *Ledger, credential string) []quota.Entry {
	t.Helper()
	list, err := l.Entries(t.Context(), quota.Query{Credential: credential, Bucket: "default"})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// mended makes sure that a repair of the bucket "default" of "k" finds something, and mends it.
func mended(t testing.TB, l *Ledger) {
	t.Helper()
	found, err := l.CheckBucket(t.Context(), "k", "default", true)
	if err != nil || len(found) == 0 {
		t.Errorf("found %+v, %v", found, err)
	}
	sound(t, l, "k")
}

// sound makes sure that a check finds nothing.
func sound(t testing.TB, l *Ledger, credential string) {
	t.Helper()
	found, err := l.CheckBucket(t.Context(), credential, "default", false)
	if err != nil || len(found) > 0 {
		t.Errorf("found %+v, %v", found, err)
	}
}

// lasts makes sure that a key outlives the entries of a log.
func lasts(t testing.TB, l *Ledger, key string) {
	t.Helper()
	if ttl := l.client.TTL(t.Context(), key).Val(); ttl < quota.Retention {
		t.Errorf("%s lapses in %v", key, ttl)
	}
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
	setAside(t, l, reserveOf("default.r", 10, time.Hour))
	s.Kill()
	if _, err := l.Charge(t.Context(), one("k", 1)); !errors.Is(err, quota.ErrUnreachable) {
		t.Errorf("a dead server: got %v, want ErrUnreachable", err)
	}
	// once there is no connection, nothing can have been executed
	if _, err := l.Charge(t.Context(), one("k", 1)); !errors.Is(err, quota.ErrNotExecuted) {
		t.Errorf("no server: got %v, want ErrNotExecuted", err)
	}
	s.Restart(t)
	if after := allowedOf(t, l, 60); before != 60 || after != 30 {
		t.Errorf("allowed %d, then %d after the restart; want 60, 30 with 10 held", before, after)
	}
	c := one("k", 10)
	c.Reservation = "default.r"
	allow(t, l, c) // on what was set aside before the restart
}

// A clock that jumps far ahead lets every key lapse, in whatever order the server forgets them; the
// log begins anew at that time, and when the clock comes back, time stands still in it rather than
// running backwards.
func TestClockJumpsFarAhead(t *testing.T) {
	s, l := clocked(t)
	setAside(t, l, reserveOf("default.r", 30, time.Hour))
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
	if entries := entriesOf(t, l, "k"); len(entries) != 100 {
		t.Errorf("%d entries", len(entries))
	}
}

// Many small entries, then few large ones: the search for the entry that must leave does not walk
// through them one by one.
func TestSkewedLog(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	limits := []quota.Limit{day(1_010_000_000)}
	for i := range 3000 {
		c := one("k", 1)
		if i >= 2000 {
			c.Costs[0].Units = 1_000_000
		}
		c.Limits = limits
		allow(t, l, c)
	}
	used, err := l.Usage(t.Context(), "k", limits)
	if err != nil {
		t.Fatal(err)
	}
	limits[0].Units = used.Buckets[0].Limits[0].Used
	entries := entriesOf(t, l, "k")
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
		stats := parseInfo(l.client.Info(t.Context(), "commandstats").Val())
		_, after, _ := strings.Cut(stats["cmdstat_zrange"], "calls=")
		if calls, _, _ := strings.Cut(after, ","); len(calls) > 2 {
			t.Errorf("%d units: %s probes", units, calls)
		}
	}
}

// Without the hash the log says what was charged. Without the log nothing does, until what was in
// it would have left every window.
func TestHalfOfABucketLost(t *testing.T) {
	s, l := clocked(t)
	allowedOf(t, l, 70)
	l.client.Del(t.Context(), stateOfK)
	if n := allowedOf(t, l, 50); n != 30 {
		t.Errorf("without its state: allowed %d more of the 30 left", n)
	}
	l.client.Del(t.Context(), logOfK)
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
	if newest := entriesOf(t, l, "k"); newest[len(newest)-1].Total != 200 {
		t.Errorf("entries %+v: the total went back", newest)
	}
	lasts(t, l, logOfK)
	lasts(t, l, stateOfK)
}

func TestOpenRefuses(t *testing.T) {
	primary := redistest.Start(t, redistest.Options{})
	host, port, _ := net.SplitHostPort(primary.Addr)
	serve := func(args ...string) string {
		return redistest.Start(t, redistest.Options{Args: args}).URL()
	}
	password := serve("--requirepass", "canary-password")
	wrong := strings.Replace(password, "redis://", "redis://:wrong-canary@", 1)
	replica := serve("--replicaof", host, port)
	evicting := serve("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	unusable := quota.ErrLedgerUnusable
	for _, test := range []struct {
		name, url string
		is        error
		says      string
	}{
		{"password", password, unusable, "asks for a password"},
		{"wrong password", wrong, unusable, "refused the user or the password"},
		{"replica", replica, unusable, "is a replica"},
		{"evicts", evicting, unusable, "would forget charges"},
		{"too old", "redis://" + oldServer(t), unusable, "4.0.14 is too old"},
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
	open(t, strings.Replace(password, "redis://", "redis://:canary-password@", 1))
}

// oldServer answers INFO as Redis 4 does, which is no longer to be found.
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
					if strings.HasPrefix(lines.Text(), "*") { // the command follows in two lines
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
	setAside(t, l, reserveOf("default.open", 1, time.Hour))
	before := dump(t, l.client, "k")
	l.client.ConfigSet(t.Context(), "maxmemory", "1mb")
	charge := one("k", 1)
	charge.Key = "once"
	calls := map[string]func() error{
		"charge": func() error { _, err := l.Charge(t.Context(), charge); return err },
		"reserve": func() error {
			_, err := l.Reserve(t.Context(), reserveOf("default.r", 1, time.Hour))
			return err
		},
		"extend": func() error {
			_, err := l.Extend(t.Context(), extendOf("default.open"))
			return err
		},
		"suspend": func() error {
			return l.Suspend(t.Context(), quota.Suspension{Credential: "k", Bucket: "default", Until: time.Now().Add(time.Hour)})
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, quota.ErrLedgerUnusable) || !says(err, "out of memory") {
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
		until := client.Do(ctx, "PEXPIRETIME", key).Val()
		var value any = client.Dump(ctx, key).Val()
		if fields := client.HGetAll(ctx, key).Val(); len(fields) > 0 { // their order says nothing
			value = fields
		}
		all[key] = fmt.Sprintf("%q until %v", value, until)
	}
	return fmt.Sprint(all)
}

// Sentinel makes the replica the primary; the ledger finds it and knows what was charged.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	at := func(args ...string) *redistest.Server {
		return redistest.Start(t, redistest.Options{Args: args})
	}
	primary := at("--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(primary.Addr)
	r := admin(t, at("--replicaof", host, port).Addr)
	says := func(what string) bool {
		return strings.Contains(r.Info(t.Context(), "replication").Val(), what)
	}
	eventually(t, "the replica follows", func() bool { return says("master_link_status:up") })
	sentinel := redistest.Start(t, redistest.Options{Sentinel: fmt.Sprintf(
		"sentinel monitor main %s %s 1\nsentinel down-after-milliseconds main 300\n"+
			"sentinel failover-timeout main 3000\n", host, port)})
	l := open(t, "redis+sentinel://"+sentinel.Addr+"/main")
	if n := allowedOf(t, l, 40); n != 40 {
		t.Fatalf("allowed %d of 40", n)
	}
	s := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr})
	defer s.Close()
	eventually(t, "the replica has the log and sentinel knows of it", func() bool {
		known, _ := s.Replicas(t.Context(), "main").Result()
		return r.ZCard(t.Context(), logOfK).Val() == 40 && len(known) == 1
	})
	primary.Kill()
	_, err := l.Usage(t.Context(), "k", hundred)
	if err != nil && !errors.Is(err, quota.ErrUnreachable) {
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
			allow(t, l, c)
		}
	}
	regions := func() (list []string) {
		for _, e := range entriesOf(t, l, "k") {
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
	allow(t, open(t, s.URL()), c)
	if got := regions(); !slices.Equal(got, append(want, pair[0])) {
		t.Errorf("after the labels were lost and told again: regions %q", got)
	}
}
