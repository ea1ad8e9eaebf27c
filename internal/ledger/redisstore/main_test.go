package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redisstore"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// start is the default time at which a test begins.
var start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// hundred are limits of 100 units in 24 hours.
var hundred = []quota.Limit{{Bucket: "default", Units: 100, Window: quota.Sliding(24 * time.Hour)}}

const (
	logOfK   = "quota:{k}:default:log"
	stateOfK = "quota:{k}:default:state"
	holdsOfK = "quota:{k}:default:holds"
)

// env is a ledger, with its store and a client of the server.
type env struct {
	*ledger.Ledger
	store  *redisstore.Store
	client redis.UniversalClient
}

func newEnv(t testing.TB, s *redisstore.Store) *env {
	return &env{ledger.New(s), s, s.Client()}
}

func open(t testing.TB, url string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(t.Context(), url)
	noError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func openEnv(t testing.TB, url string) *env {
	t.Helper()
	return newEnv(t, open(t, url))
}

// clocked starts a server with a stopped clock.
func clocked(t testing.TB) (*redistest.Server, *env) {
	t.Helper()
	s := redistest.Start(t, redistest.Options{Clock: true})
	s.SetNow(t, start)
	return s, openEnv(t, s.URL())
}

// one returns a charge on the bucket "default".
func one(credential string, units int64) quota.Charge {
	return quota.Charge{Credential: credential, ID: quota.NewID(time.Now()), Limits: hundred,
		Costs: []quota.Cost{{Bucket: "default", Units: units}}, Labels: quota.Labels{"method": "m"}}
}

// allow makes a charge that must be allowed.
func allow(t testing.TB, l *env, c quota.Charge) quota.Decision {
	t.Helper()
	d, err := l.Charge(t.Context(), c)
	if err != nil || !d.Allowed {
		t.Fatalf("charge of %v: %+v, %v", c.Costs, d, err)
	}
	return d
}

// allowedOf makes n charges of one unit, and returns the number of those that are allowed.
func allowedOf(t testing.TB, l *env, n int) (allowed int) {
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

func reserveOf(id string, units int64, ttl time.Duration) quota.Reserve {
	return quota.Reserve{Credential: "k", ID: id, TTL: ttl, Limits: hundred,
		Costs: []quota.Cost{{Bucket: "default", Units: units}}}
}

// setAside makes a reservation that must be allowed.
func setAside(t testing.TB, l *env, r quota.Reserve) {
	t.Helper()
	if d, err := l.Reserve(t.Context(), r); err != nil || !d.Allowed {
		t.Fatalf("reserve: %+v, %v", d, err)
	}
}

// settleOf returns a settlement of a reservation in the bucket "default".
func settleOf(reservation string, units int64) quota.Settle {
	return quota.Settle{Credential: "k", Reservation: reservation, ID: "c", Limits: hundred,
		Costs: []quota.Cost{{Bucket: "default", Units: units}}}
}

// extendOf returns an extension of a reservation by two hours.
func extendOf(reservation string) quota.Extend {
	return quota.Extend{Credential: "k", Reservation: reservation, TTL: 2 * time.Hour}
}

func released(reservation string) quota.Release {
	return quota.Release{Credential: "k", Reservation: reservation}
}

func adjustOf(credential string, units int64) quota.Adjust {
	return quota.Adjust{Credential: credential, ID: quota.NewID(time.Now()), Bucket: "default",
		Units: units, Limits: hundred}
}

// addEntries adds n entries of one unit, 1 µs apart, after the entry at the given time.
func addEntries(t testing.TB, l *env, n int64, after time.Time) {
	t.Helper()
	pipe := l.client.Pipeline()
	for i := range n {
		pipe.ZAdd(t.Context(), logOfK, redis.Z{Score: float64(after.UnixMicro() + 1 + i),
			Member: fmt.Sprintf("%d:1:e%d:method=m", 2+i, i)})
	}
	noError(t, only(pipe.Exec(t.Context())))
}

// entriesOf returns the log of the bucket "default".
func entriesOf(t testing.TB, l *env, credential string) []quota.Entry {
	t.Helper()
	list, err := l.Entries(t.Context(), quota.Query{Credential: credential, Bucket: "default"})
	noError(t, err)
	return list
}

// check returns the findings of a check of the bucket "default" of "k".
func check(t testing.TB, l *env, repair bool) string {
	t.Helper()
	found, err := l.Check(t.Context(), "k", "default", repair)
	if err != nil {
		t.Error(err)
	}
	var words []string
	for _, f := range found {
		words = append(words, f.What+": "+f.Repair)
	}
	return strings.Join(words, "; ")
}

func sound(t testing.TB, l *env) {
	t.Helper()
	if found := check(t, l, false); found != "" {
		t.Errorf("found %s", found)
	}
}

// dump returns every key of a credential, with its time to live.
func dump(t testing.TB, client redis.UniversalClient, credential string) string {
	t.Helper()
	keys, err := client.Keys(t.Context(), "quota:{"+credential+"}:*").Result()
	noError(t, err)
	slices.Sort(keys)
	var text strings.Builder
	for _, key := range keys {
		var value any = client.Dump(t.Context(), key).Val()
		if fields := client.HGetAll(t.Context(), key).Val(); len(fields) > 0 {
			value = ""
			for _, field := range slices.Sorted(maps.Keys(fields)) {
				value = fmt.Sprintf("%s %s=%s", value, field, fields[field])
			}
		}
		fmt.Fprintf(&text, "%s %q until %v\n", key, value,
			client.Do(t.Context(), "PEXPIRETIME", key).Val())
	}
	return text.String()
}

func must(t testing.TB, cmd redis.Cmder) {
	t.Helper()
	noError(t, cmd.Err())
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// isError checks the kind of an error, and that its text contains words and no password.
func isError(t testing.TB, err, kind error, words string) {
	t.Helper()
	if !errors.Is(err, kind) || !says(err, words) || says(err, "canary") {
		t.Errorf("got %v\nwant %v with %q", err, kind, words)
	}
}

func says(err error, words string) bool { return strings.Contains(fmt.Sprint(err), words) }

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in 60 s: %s", what)
		}
	}
}

// once runs a function before a client sends a command for the first time.
type once struct {
	command string
	run     func()
}

// before adds a hook to the client of a ledger.
func before(l *env, command string, run func()) {
	l.client.AddHook(once{command, sync.OnceFunc(run)})
}

func (once) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h once) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.EqualFold(cmd.Name(), h.command) {
			h.run()
		}
		return next(ctx, cmd)
	}
}

func (h once) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if strings.EqualFold(cmd.Name(), h.command) {
				h.run()
			}
		}
		return next(ctx, cmds)
	}
}

// afterReply is a hook that runs a function after each reply with this text.
type afterReply struct {
	text string
	run  func()
}

func (afterReply) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h afterReply) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if strings.HasSuffix(cmd.String(), ": "+h.text) {
			h.run()
		}
		return err
	}
}

func (afterReply) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// isDamaged reports whether an error names the bucket "default" as damaged.
func isDamaged(err error) bool {
	damaged, is := errors.AsType[*quota.DamagedError](err)
	return is && damaged.Bucket == "default" && damaged.Credential == "k"
}

// documentedACL returns the line of the manual that creates a user, as a command.
func documentedACL(t *testing.T) (command []any) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/redis.md")
	noError(t, err)
	form := regexp.MustCompile(`(?m)^    (ACL SETUSER .*)$`)
	lines := form.FindAllStringSubmatch(string(text), -1)
	if len(lines) != 1 {
		t.Fatalf("%d lines make an ACL user", len(lines))
	}
	for _, word := range strings.Fields(lines[0][1]) {
		command = append(command, word)
	}
	return command
}
