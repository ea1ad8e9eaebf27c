package limit_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redisstore"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/limit"
)

// TestExpiryAfterSetBack sets the server's clock back by an hour: no key expires while its
// charges count, nor much later.
func TestExpiryAfterSetBack(t *testing.T) {
	t.Parallel()
	b := startBoth(t)
	for _, algorithm := range algorithms {
		p := &limit.Policy{Name: string(algorithm), Units: 2, Window: time.Minute,
			Algorithm: algorithm}
		take := func(now time.Time) (bool, limit.Decision, time.Duration) {
			b.server.SetNow(t, now)
			asks := []limit.Ask{{Policy: p, Key: somebody, Cost: 1}}
			allowed, err := b.store.Take(t.Context(), asks)
			must(t, err)
			keys := b.client.Keys(t.Context(), "*:"+string(algorithm)+":*").Val()
			if len(keys) != 1 {
				t.Fatalf("%s: keys %v", algorithm, keys)
			}
			return allowed, asks[0].Decision, b.client.PTTL(t.Context(), keys[0]).Val()
		}
		for i, now := range []time.Time{clockStart, clockStart.Add(-time.Hour), clockStart.Add(-time.Hour)} {
			allowed, d, left := take(now)
			if allowed != (i < 2) {
				t.Errorf("%s, call %d: allowed is %v", algorithm, i, allowed)
			}
			if left < d.ResetAfter || left > d.ResetAfter+p.Window+2*time.Millisecond {
				t.Errorf("%s, call %d: the key expires in %v, its charges matter for %v", algorithm,
					i, left, d.ResetAfter)
			}
		}
	}
}

// TestLargestCounter charges denied calls beyond a counter's maximum, on Redis and in memory.
func TestLargestCounter(t *testing.T) {
	b := startBoth(t)
	p := &limit.Policy{Name: "largest", Units: 2_606_249, Window: 40 * 24 * time.Hour,
		Algorithm: limit.Counter, CountDenied: true}
	if more := (limit.Policy{Units: p.Units + 1, Window: p.Window,
		Algorithm: limit.Counter}); p.Check() != nil || more.Check() == nil {
		t.Fatalf("%v, %v", p.Check(), more.Check())
	}
	for i := range 20 {
		now := clockStart.Add(time.Duration(i) * (5*24*time.Hour + time.Microsecond))
		asks := []limit.Ask{{Policy: p, Cost: p.Units/2 + 1}}
		if difference := b.take(t, now, asks); difference != "" {
			t.Fatalf("call %d: %s", i+1, difference)
		}
	}
}

// TestRights decides as the user that docs/redis.md creates, with the rights it lists for a
// limiter.
func TestRights(t *testing.T) {
	text, err := os.ReadFile("../../docs/redis.md")
	must(t, err)
	user := regexp.MustCompile(`(?m)^    (ACL SETUSER .*)$`).FindSubmatch(text)
	more := regexp.MustCompile("A limiter .* needs `([^`]*)`").FindSubmatch(text)
	if user == nil || more == nil {
		t.Fatal("docs/redis.md creates no user, or does not list the rights of a limiter")
	}
	server := redistest.Start(t, redistest.Options{})
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer admin.Close()
	var command []any
	for _, word := range strings.Fields(string(user[1]) + " " + string(more[1])) {
		command = append(command, word)
	}
	must(t, admin.Do(t.Context(), command...).Err())
	client, err := redisstore.Connect(t.Context(),
		strings.Replace(server.URL(), "redis://", "redis://quota:PASSWORD@", 1))
	must(t, err)
	defer client.Close()
	store := limit.NewRedis(client)
	for _, algorithm := range algorithms {
		p := &limit.Policy{Name: string(algorithm), Units: 2, Window: time.Minute,
			Algorithm: algorithm, CountDenied: true}
		asks := []limit.Ask{{Policy: p, Key: limit.Key{2}, Cost: 2}}
		for i := range 4 {
			if ok, err := store.Take(t.Context(), asks); err != nil || ok != (i == 0) {
				t.Errorf("%s: %v %v", algorithm, ok, err)
			}
		}
	}
	if _, err := store.Salt(t.Context()); err != nil {
		t.Error(err)
	}
	if log, err := admin.Do(t.Context(), "acl", "log").Slice(); err != nil || len(log) > 0 {
		t.Errorf("refused: %v %v", log, err)
	}
}

// TestSalt requires that processes share a salt, and get a new one within a minute of its loss.
func TestSalt(t *testing.T) {
	client := startBoth(t).client
	salts := map[string]bool{}
	for i := range 3 {
		if i == 2 {
			client.FlushAll(t.Context())
		}
		salt, err := limit.NewRedis(client).Salt(t.Context())
		if err != nil || len(salt) != 32 {
			t.Fatal(len(salt), err)
		}
		salts[string(salt)] = true
	}
	if len(salts) != 2 {
		t.Errorf("%d salts of three processes, the last of which started after a loss", len(salts))
	}
}

// TestCluster decides on a cluster: whole keys in one slot, parts in separate slots.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	client, err := redisstore.Connect(t.Context(), "redis+cluster://"+cluster.Masters[0].Addr)
	must(t, err)
	defer client.Close()
	store := limit.NewRedis(client)
	hot := &limit.Policy{
		Name: "hot", Units: 20, Window: time.Hour, Algorithm: limit.Log, Shards: 4}
	mine := &limit.Policy{Name: "mine", Units: 6, Window: time.Hour, Algorithm: limit.Counter}
	every := &limit.Policy{Name: "every", Units: 30, Window: time.Hour, Algorithm: limit.Log}
	allowed := 0
	for i := range 60 {
		asks := []limit.Ask{{Policy: mine, Key: limit.Key{byte(i / 10)}, Cost: 1},
			{Policy: hot, Cost: 1}, {Policy: every, Cost: 1}}
		ok, err := store.Take(t.Context(), asks)
		must(t, err)
		if ok {
			allowed++
		}
	}
	if allowed != 20 {
		t.Errorf("%d allowed, want 20", allowed)
	}
	nodes := 0
	for _, node := range cluster.Masters {
		if n, err := cluster.Admin(node).DBSize(t.Context()).Result(); err == nil && n > 0 {
			nodes++
		}
	}
	if nodes < 2 {
		t.Errorf("the keys are on %d nodes", nodes)
	}
}
