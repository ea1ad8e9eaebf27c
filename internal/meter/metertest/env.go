// Package metertest starts a Transport between a test and a stand-in.
package metertest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// Key must reach the upstream, and nothing else.
const Key = "canary-2f6b1c"

// Requests of some methods.
const (
	Chart      = "/youtube/v3/videos?part=id&chart=mostPopular&regionCode=US&maxResults=50"
	Categories = "/youtube/v3/videoCategories?part=snippet&regionCode=US"
	Search     = "/youtube/v3/search?part=id&q=a"
	Rate       = "/youtube/v3/videos/rate?id=a&rating=like"
)

// Noon is the time in a new Env.
var Noon = time.Date(2026, time.June, 1, 19, 0, 0, 0, time.UTC)

// Env is a gate for the credential key1 between a program and the stand-in. The stand-in and
// the ledger share a clock, which SetNow sets.
type Env struct {
	*meter.Transport
	Ledger  *ledger.Ledger
	Standin *standin.YouTube
	Server  *httptest.Server // the stand-in's
	Log     *Log
	Asked   atomic.Pointer[http.Request] // the last request that reached the stand-in
	Served  atomic.Int64                 // number of requests that reached it

	now      atomic.Pointer[time.Time]
	setRedis func(time.Time) // sets the clock of Redis; nil without Redis
}

// Open wires an Env on a ledger in SQLite.
func Open(t testing.TB, standin *standin.YouTube, limits []quota.Limit) *Env {
	t.Helper()
	s := &Env{Ledger: File(t), Standin: standin}
	s.Ledger.Now = s.Now
	return s.wire(t, limits)
}

// File opens a ledger in SQLite.
func File(t testing.TB) *ledger.Ledger {
	t.Helper()
	l, err := ledger.OpenFile(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	Must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// OpenOnRedis wires an Env on a ledger in Redis.
func OpenOnRedis(t testing.TB, standin *standin.YouTube, limits []quota.Limit) *Env {
	t.Helper()
	s := &Env{Standin: standin}
	s.Ledger, s.setRedis = Redis(t)
	return s.wire(t, limits)
}

// Redis opens a ledger in Redis, and returns it with a function that sets the server's clock.
func Redis(t testing.TB) (*ledger.Ledger, func(time.Time)) {
	t.Helper()
	server := redistest.Start(t, redistest.Options{Clock: true})
	l, err := ledger.Open(t.Context(), server.URL())
	Must(t, err)
	t.Cleanup(func() { l.Close() })
	return l, func(now time.Time) { server.SetNow(t, now) }
}

func (s *Env) wire(t testing.TB, limits []quota.Limit) *Env {
	t.Helper()
	s.Log = new(Log)
	s.SetNow(Noon)
	s.Standin.Now, s.Standin.Keys = s.Now, []string{Key}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Served.Add(1)
		s.Asked.Store(r.Clone(context.Background()))
		s.Standin.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Server.Close)
	log := slog.New(slog.NewTextHandler(s.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	table := costs.Default()
	budget := config.Credential{Name: "key1", Limits: limits}.Budget(s.Ledger, table, log)
	s.Transport = Gate(t, s.Server.URL, table, budget, log)
	return s
}

// Gate returns a gate in front of an upstream, which adds Key.
func Gate(t testing.TB, address string, table *costs.Table, budget *quota.Budget,
	log *slog.Logger) *meter.Transport {
	t.Helper()
	gate, err := meter.New(address, table, budget, func() (string, error) { return Key, nil }, log)
	Must(t, err)
	t.Cleanup(gate.Base.(*http.Transport).CloseIdleConnections)
	return gate
}

// Now is the time by the clock of the Env.
func (s *Env) Now() time.Time { return *s.now.Load() }

// SetNow sets that clock.
func (s *Env) SetNow(now time.Time) {
	s.now.Store(&now)
	if s.setRedis != nil {
		s.setRedis(now)
	}
}

// Answering replaces the stand-in by a handler.
func (s *Env) Answering(answer http.HandlerFunc) { s.Server.Config.Handler = answer }

// Counted checks the number of requests at the stand-in and of units in the ledger.
func (s *Env) Counted(t testing.TB, requests, charged int64) {
	t.Helper()
	if c := s.Standin.Counts(); c.Requests != requests || c.KeyInURL != 0 || c.Refused != 0 {
		t.Errorf("the upstream counted %+v, want %d requests", c, requests)
	}
	if used := s.Used(t); used != charged {
		t.Errorf("the ledger has %d units, want %d", used, charged)
	}
}

// Used returns the units of all entries in the ledger.
func (s *Env) Used(t testing.TB) (sum int64) {
	t.Helper()
	units, _ := Booked(t, s.Ledger, s.Budget.Credential)
	for _, n := range units {
		sum += n
	}
	return sum
}

// Booked returns the units of a credential's entries, without those for use by other programs, and
// the units still held, by bucket.
func Booked(t testing.TB, l quota.BudgetLedger, credential string) (units, held map[string]int64) {
	t.Helper()
	units, held = map[string]int64{}, map[string]int64{}
	buckets, err := l.BucketsOf(t.Context(), credential)
	Must(t, err)
	for _, bucket := range quota.BucketNames(buckets) {
		entries, err := l.Entries(t.Context(), quota.Query{Credential: credential, Bucket: bucket})
		Must(t, err)
		for _, e := range entries {
			if e.Labels[quota.LabelSource] == "" {
				units[bucket] += e.Units
			}
		}
		holds, err := l.Reservations(t.Context(), credential, bucket)
		Must(t, err)
		for _, h := range holds {
			held[bucket] += h.Left
		}
	}
	return units, held
}

// Units returns a limit of the default bucket in any 24 hours.
func Units(n int64) []quota.Limit {
	window := quota.Sliding(24 * time.Hour)
	return []quota.Limit{{Bucket: quota.DefaultBucket, Units: n, Window: window}}
}

// Log is text that can be read while it is written.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
