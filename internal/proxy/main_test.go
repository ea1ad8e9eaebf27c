package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/ledger/sqliteledger"
	"quotabudget/internal/meter"
	"quotabudget/internal/proxy"
	"quotabudget/internal/quota"
	"quotabudget/internal/upstream"
	"quotabudget/internal/youtube/youtubetest"
)

// canary is the key that must reach the upstream, and nothing else.
const canary = "canary-2f6b1c"

// noon is when the tests begin.
var noon = time.Date(2026, time.June, 1, 19, 0, 0, 0, time.UTC)

const (
	chart      = "/youtube/v3/videos?part=id&chart=mostPopular&regionCode=US&maxResults=50"
	categories = "/youtube/v3/videoCategories?part=snippet&regionCode=US"
	search     = "/youtube/v3/search?part=id&q=a"
	rate       = "/youtube/v3/videos/rate?id=a&rating=like"
)

// station is a proxy between a program and the stand-in, on a SQLite ledger.
type station struct {
	*proxy.Proxy
	gate     *meter.Transport
	ledger   *sqliteledger.Ledger
	standin  *youtubetest.Server
	upstream *httptest.Server
	front    front
	log      *lines
	asked    atomic.Pointer[http.Request] // the last request that reached the stand-in

	now atomic.Pointer[time.Time]
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

func (s *station) clock() time.Time { return *s.now.Load() }

func (s *station) setNow(now time.Time) { s.now.Store(&now) }

// units is a limit of so many units of the default bucket in any 24 hours.
func units(n int64) []quota.Limit {
	return []quota.Limit{{Bucket: quota.DefaultBucket, Units: n,
		Window: quota.Sliding(24 * time.Hour)}}
}

// open starts a proxy; change sets it up before its first request.
func open(t testing.TB, limits []quota.Limit, change ...func(*station)) *station {
	t.Helper()
	ledger, err := sqliteledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ledger.Close() })
	s := &station{ledger: ledger, standin: &youtubetest.Server{Keys: []string{canary}},
		log: &lines{}}
	s.setNow(noon)
	ledger.Now, s.standin.Now = s.clock, s.clock
	s.upstream = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Store(r.Clone(context.Background()))
		s.standin.ServeHTTP(w, r)
	}))
	t.Cleanup(s.upstream.Close)
	table := costs.Default()
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	budget := config.Credential{Name: "key1", Limits: limits}.Budget(ledger, table, log)
	s.gate, err = upstream.Gate(s.upstream.URL, table, budget,
		func() (string, error) { return canary, nil }, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.gate.Base.(*http.Transport).CloseIdleConnections)
	to, err := url.Parse(s.upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.Proxy = &proxy.Proxy{Transport: s.gate, Table: table, Upstream: to,
		Limits: proxy.DefaultLimits(), Log: log}
	for _, f := range change {
		f(s)
	}
	s.front = serve(t, s.Proxy, "127.0.0.1:0")
	return s
}

// front is where the proxy listens.
type front struct {
	URL      string
	Listener net.Listener
}

// serve starts the proxy as its program does, for as long as the test runs.
func serve(t testing.TB, p *proxy.Proxy, address string) front {
	t.Helper()
	listener, err := proxy.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return front{"http://" + listener.Addr().String(), listener}
}

// answering makes the upstream answer so, in place of the stand-in.
func (s *station) answering(answer http.HandlerFunc) { s.upstream.Config.Handler = answer }

// origins allows a web page.
func origins(s *station) { s.Origins = []string{"https://dashboard.example"} }

// get asks the proxy, with pairs of header names and values.
func (s *station) get(t testing.TB, path string, header ...string) answer {
	t.Helper()
	return s.do(t, http.MethodGet, path, "", header...)
}

// do asks the proxy. A header Host is the request's.
func (s *station) do(t testing.TB, verb, path, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), verb, s.front.URL+path,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	return read(t, r)
}

// answer is what the proxy answered.
type answer struct {
	status int
	header http.Header
	body   string
}

func read(t testing.TB, r *http.Request) answer {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// problem is the body of a refusal.
type problem struct {
	Error struct {
		Code            int
		Message, Status string
		Errors          []struct{ Message, Domain, Reason string }
		Details         []struct {
			Reason, Domain string
			Metadata       map[string]string
		}
	}
	Title, Detail, Limit string
	Status               int
	RetryAt              string         `json:"retry_at"`
	Charged              map[string]int `json:"charged"`
}

// refused wants a refusal with this status, and returns what it says.
func (a answer) refused(t testing.TB, status int) (p problem) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("%d %q: %v", a.status, a.body, err)
	}
	e := p.Error
	if a.status != status || p.Status != status || e.Code != status || p.Title == "" ||
		e.Message != p.Detail || e.Message == "" ||
		len(e.Errors) != 1 || e.Errors[0].Message != e.Message || len(e.Details) != 1 ||
		e.Status == "" {
		t.Errorf("want %d, got %d: %s", status, a.status, a.body)
	}
	return p
}

// counted wants so many requests at the stand-in, and so many units in the ledger.
func (s *station) counted(t testing.TB, requests, charged int64) {
	t.Helper()
	if c := s.standin.Counts(); c.Requests != requests || c.KeyInURL != 0 || c.Refused != 0 {
		t.Errorf("the upstream counted %+v, want %d requests", c, requests)
	}
	if used := s.used(t); used != charged {
		t.Errorf("the ledger has %d units, want %d", used, charged)
	}
}

// used is what the ledger has in all its buckets.
func (s *station) used(t testing.TB) (sum int64) {
	t.Helper()
	for _, bucket := range s.gate.Budget.Buckets() {
		entries, err := s.ledger.Entries(t.Context(),
			quota.Query{Credential: "key1", Bucket: bucket})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			sum += e.Units
		}
	}
	return sum
}

// local is the address on which the proxy listens.
func (s *station) local() string { return s.front.Listener.Addr().(*net.TCPAddr).String() }

// awaitUsed waits until the ledger has so many units.
func (s *station) awaitUsed(t testing.TB, want int64) {
	t.Helper()
	await(t, func() bool { return s.used(t) >= want })
	if used := s.used(t); used != want {
		t.Errorf("the ledger has %d units, want %d", used, want)
	}
}

// await waits until it holds.
func await(t testing.TB, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came about")
		}
	}
}
