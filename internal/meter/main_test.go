package meter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	"quotabudget/internal/ledger/redisledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/ledger/sqliteledger"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/upstream"
	"quotabudget/internal/youtube/youtubetest"
)

// canary is the key that must reach the upstream, and nothing else.
const canary = "canary-2f6b1c"

// noon is when the tests that do not care begin.
var noon = time.Date(2026, time.June, 1, 19, 0, 0, 0, time.UTC)

// clock stands still until it is set.
type clock struct {
	now atomic.Pointer[time.Time]
	set func(time.Time) // tells a server too
}

func (c *clock) Now() time.Time { return *c.now.Load() }

func (c *clock) Set(now time.Time) {
	c.now.Store(&now)
	if c.set != nil {
		c.set(now)
	}
}

// station is a gate between a client and the stand-in.
type station struct {
	*meter.Transport
	clock    *clock
	ledger   quota.Ledger
	standin  *youtubetest.Server
	upstream *httptest.Server
	log      *lines
	asked    atomic.Pointer[http.Request] // the last one
	served   atomic.Int64                 // requests that have reached the stand-in
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// units is a limit of so many units a day, in any 24 hours.
func units(n int64) []quota.Limit {
	return []quota.Limit{{Bucket: quota.DefaultBucket, Units: n,
		Window: quota.Sliding(24 * time.Hour)}}
}

// open wires a station on a SQLite ledger.
func open(t testing.TB, standin *youtubetest.Server, limits []quota.Limit) *station {
	t.Helper()
	ledger, err := sqliteledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{}
	c.Set(noon)
	ledger.Now = c.Now
	return wire(t, &station{clock: c, ledger: ledger, standin: standin}, limits)
}

// onRedis wires a station on a Redis ledger.
func onRedis(t testing.TB, standin *youtubetest.Server, limits []quota.Limit) *station {
	t.Helper()
	server := redistest.Start(t, redistest.Options{Clock: true})
	ledger, err := redisledger.Open(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{set: func(now time.Time) { server.SetNow(t, now) }}
	c.Set(noon)
	return wire(t, &station{clock: c, ledger: ledger, standin: standin}, limits)
}

// wire puts the gate between the ledger and the stand-in, which has the same clock.
func wire(t testing.TB, s *station, limits []quota.Limit) *station {
	t.Helper()
	if s.standin.Now == nil {
		s.standin.Now = s.clock.Now
	}
	s.standin.Keys = []string{canary}
	s.upstream = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.served.Add(1)
		s.asked.Store(r.Clone(context.Background()))
		if got := r.Header.Get("X-Goog-Api-Key"); got != canary {
			t.Errorf("the upstream was given the key %q", got)
		}
		s.standin.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.ledger.Close() })
	t.Cleanup(s.upstream.Close)
	s.log = &lines{}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	table := costs.Default()
	budget := config.Credential{Name: "key1", Limits: limits}.Budget(s.ledger, table, log)
	var err error
	s.Transport, err = upstream.Gate(s.upstream.URL, table, budget,
		func() (string, error) { return canary, nil }, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Base.(*http.Transport).CloseIdleConnections)
	return s
}

// opener is how a test gets its station.
type opener func(testing.TB, *youtubetest.Server, []quota.Limit) *station

// onLedgers runs a test on each kind of ledger.
func onLedgers(t *testing.T, test func(*testing.T, opener)) {
	t.Run("sqlite", func(t *testing.T) { test(t, open) })
	t.Run("redis", func(t *testing.T) { test(t, onRedis) })
}

const (
	chart      = "/youtube/v3/videos?part=id&chart=mostPopular&regionCode=US&maxResults=50"
	categories = "/youtube/v3/videoCategories?part=snippet&regionCode=US"
	search     = "/youtube/v3/search?part=id&q=a"
	rate       = "/youtube/v3/videos/rate?id=a&rating=like"
)

// get asks the upstream through the gate and returns the status and the body.
func (s *station) get(t testing.TB, path string) (int, string, error) {
	t.Helper()
	return s.ask(t.Context(), path)
}

// ask is get under a context.
func (s *station) ask(ctx context.Context, path string) (int, string, error) {
	return s.send(s.request(ctx, http.MethodGet, path, nil))
}

func (s *station) send(r *http.Request) (int, string, error) {
	return read((&http.Client{Transport: s}).Do(r))
}

// request is one for the upstream, or for another address if that is given whole.
func (s *station) request(ctx context.Context, verb, to string, body io.Reader) *http.Request {
	if strings.HasPrefix(to, "/") || to == "" {
		to = s.upstream.URL + to
	}
	r, err := http.NewRequestWithContext(ctx, verb, to, body)
	if err != nil {
		panic(err)
	}
	return r
}

// answering makes the upstream answer so, in place of the stand-in.
func (s *station) answering(answer http.HandlerFunc) *station {
	s.upstream.Config.Handler = answer
	return s
}

func read(resp *http.Response, err error) (int, string, error) {
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// entries are the ledger's of the default bucket.
func (s *station) entries(t testing.TB) []quota.Entry {
	t.Helper()
	entries, err := s.ledger.Entries(t.Context(),
		quota.Query{Credential: "key1", Bucket: "default"})
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// used is what the ledger has on a bucket.
func (s *station) used(t testing.TB, bucket string) int64 {
	t.Helper()
	return s.usage(t, bucket).Limits[0].Used
}

func (s *station) usage(t testing.TB, bucket string) quota.BucketUsage {
	t.Helper()
	all, err := s.Budget.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all.Buckets {
		if b.Bucket == bucket {
			return b
		}
	}
	t.Fatalf("no bucket %s", bucket)
	return quota.BucketUsage{}
}

// counted compares the stand-in's count of requests with the wanted one, and the ledger's units of
// the default bucket.
func (s *station) counted(t testing.TB, requests, charged int64) {
	t.Helper()
	c := s.standin.Counts()
	if c.Requests != requests || c.KeyInURL != 0 || c.Refused != 0 {
		t.Errorf("the upstream counted %+v, want %d requests", c, requests)
	}
	if used := s.used(t, quota.DefaultBucket); used != charged {
		t.Errorf("the ledger has %d units, want %d", used, charged)
	}
}

func faults(t testing.TB, specs ...string) []youtubetest.Fault {
	t.Helper()
	all, err := youtubetest.ParseFaults(specs...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// refused wants an error of the gate, for that reason, that says nothing of the key.
func refused(t testing.TB, err, reason error) {
	t.Helper()
	if !errors.Is(err, quota.ErrNotSent) || !errors.Is(err, reason) {
		t.Errorf("got %v, want %v", err, reason)
	}
	if strings.Contains(fmt.Sprintf("%+v", err), canary) {
		t.Errorf("the key is in %v", err)
	}
}
