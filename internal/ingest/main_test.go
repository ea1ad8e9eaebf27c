package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/ingest"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/meter"
	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/standin"
	"quotabudget/internal/youtube"
)

// nine is 09:00 in Los Angeles, in summer.
var nine = time.Date(2026, time.June, 1, 16, 0, 0, 0, time.UTC)

// midnight is the upstream's next reset after nine.
var midnight = time.Date(2026, time.June, 2, 7, 0, 0, 0, time.UTC)

const eight = "US,GB,DE,FR,IN,BR,AU,CA"

// env holds what a sweep needs: the stand-in, the gate, a ledger and a catalogue.
type env struct {
	standin  *standin.YouTube
	charts   *standin.Charts
	upstream *httptest.Server // nil in a bubble
	budget   *quota.Budget
	client   *youtube.Client
	catalog  *catalog.Catalog
	setNow   func(time.Time) // sets a Redis server's clock; nil with SQLite
	inBubble bool            // the test runs in a bubble, without sockets

	mu  sync.Mutex
	now time.Time
	// region and page of each request since the last call of requests
	asked []string
	pages int                      // pages returned in a bubble
	hook  func(*http.Request)      // called with each request
	alter func(body string) string // rewrites each response
}

var units = metertest.Units

// plenty returns an env with more units than any test needs.
func plenty(t testing.TB) *env {
	t.Helper()
	return open(t, &standin.YouTube{}, units(1000))
}

// open returns an env with a SQLite ledger.
func open(t testing.TB, standin *standin.YouTube, limits []quota.Limit) *env {
	t.Helper()
	return (&env{standin: standin}).onFile(t, t.TempDir(), limits)
}

// onFile fills in the env, with a ledger and a catalogue in dir.
func (s *env) onFile(t testing.TB, dir string, limits []quota.Limit) *env {
	t.Helper()
	ledger, err := ledger.OpenFile(t.Context(), filepath.Join(dir, "ledger.db"))
	must(t, err)
	ledger.Now = s.Now
	return s.setUp(t, dir, ledger, limits)
}

// onRedis returns an env with a Redis ledger.
func onRedis(t testing.TB, standin *standin.YouTube, limits []quota.Limit) *env {
	t.Helper()
	server := redistest.Start(t, redistest.Options{Clock: true})
	ledger, err := ledger.Open(t.Context(), server.URL())
	must(t, err)
	s := &env{standin: standin, setNow: func(now time.Time) { server.SetNow(t, now) }}
	return s.setUp(t, t.TempDir(), ledger, limits)
}

type openFunc func(testing.TB, *standin.YouTube, []quota.Limit) *env

// onLedgers runs a test on each kind of ledger.
func onLedgers(t *testing.T, test func(*testing.T, openFunc)) {
	t.Run("sqlite", func(t *testing.T) { test(t, open) })
	t.Run("redis", func(t *testing.T) { test(t, onRedis) })
}

// setUp fills in the env with the given ledger, and creates the catalogue in dir.
func (s *env) setUp(t testing.TB, dir string, ledger *ledger.Ledger, limits []quota.Limit) *env {
	t.Helper()
	t.Cleanup(func() { ledger.Close() })
	s.SetNow(nine)
	s.standin.Now = s.Now
	if s.charts = s.standin.Charts; s.charts == nil {
		s.charts = generated()
		s.standin.Charts = s.charts
	}
	address, base := s.serve(t)
	log := slog.New(slog.DiscardHandler)
	table := costs.Default()
	s.budget = config.Credential{Name: "key1", Limits: limits}.Budget(ledger, table, log)
	gate, err := meter.New(address, table, s.budget,
		func() (string, error) { return "some-key", nil }, log)
	must(t, err)
	gate.Base = base
	s.client, err = youtube.New(t.Context(), address, gate)
	must(t, err)
	s.client.Retry = youtube.Retry{Transient: 3, Throttled: 2}
	s.catalog, err = catalog.Open(t.Context(), "sqlite://"+filepath.Join(dir, "catalog.db"))
	must(t, err)
	t.Cleanup(func() { s.catalog.Close() })
	return s
}

// serve starts the stand-in and returns its address and the transport that reaches it.
func (s *env) serve(t testing.TB) (address string, way http.RoundTripper) {
	if s.inBubble {
		return "http://localhost", s
	}
	s.upstream = httptest.NewServer(s)
	t.Cleanup(s.upstream.Close)
	base := meter.NewBase()
	t.Cleanup(base.CloseIdleConnections)
	return s.upstream.URL, base
}

// inBubble runs a test in a testing/synctest bubble whose time begins at nine. It creates the
// folder outside the bubble, because the cleanup that removes it runs there.
func inBubble(t *testing.T, standin *standin.YouTube, most int64, test func(*testing.T, *env)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(nine))
		s := (&env{standin: standin, inBubble: true}).onFile(t, dir, units(most))
		s.client.Retry = youtube.DefaultRetry()
		s.client.Retry.Transient = 3
		test(t, s)
	})
}

// RoundTrip serves a request without a socket, which would keep time in a bubble from passing. Its
// pages hold three videos.
func (s *env) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.GotConn(httptrace.GotConnInfo{}) // the client counts the request as sent from here on
	}
	defer func() {
		if value := recover(); value == http.ErrAbortHandler {
			resp, err = nil, io.ErrUnexpectedEOF
		}
	}()
	query := r.URL.Query()
	query.Set("maxResults", "3")
	short := r.Clone(r.Context())
	short.URL.RawQuery = query.Encode()
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, short)
	if err := r.Context().Err(); err != nil {
		return nil, errors.Join(err, errors.New("the client disconnected"))
	}
	if answer.Code == http.StatusOK {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pages++
	}
	return answer.Result(), nil
}

// generated returns the charts of the zero Generator.
var generated = sync.OnceValue(standin.Generator{}.Charts)

// nameOf returns the region and the page number of a request: "US1".
func nameOf(r *http.Request) string {
	pages := map[string]int{"": 1, "CDIQAA": 2, "CGQQAA": 3, "CJYBEAA": 4,
		"CAMQAA": 2, "CAYQAA": 3, "CAkQAA": 4} // of pages with three videos
	query := r.URL.Query()
	return fmt.Sprint(query.Get("regionCode"), pages[query.Get("pageToken")])
}

// ServeHTTP records the request and passes it to the stand-in.
func (s *env) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, nameOf(r))
	hook, alter := s.hook, s.alter
	s.mu.Unlock()
	if hook != nil {
		hook(r)
	}
	if alter == nil {
		s.standin.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	s.standin.ServeHTTP(answer, r)
	w.WriteHeader(answer.Code)
	fmt.Fprint(w, alter(answer.Body.String()))
}

// requests returns the requests since its last call: "US1 US2".
func (s *env) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := strings.Join(s.asked, " ")
	s.asked = nil
	return asked
}

// onRequest sets a function to be called with each request.
func (s *env) onRequest(fn func(*http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = fn
}

func (s *env) Now() time.Time {
	if s.inBubble {
		return time.Now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// SetNow stops every clock at now.
func (s *env) SetNow(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
	if s.setNow != nil {
		s.setNow(now)
	}
}

// sweep returns a sweep of regions given as "US,GB".
func (s *env) sweep(t testing.TB, list string, pages int) *ingest.Sweep {
	t.Helper()
	parsed, err := regions.ParseList(strings.Split(list, ","))
	must(t, err)
	return &ingest.Sweep{
		Client: s.client, Catalog: s.catalog, Budget: s.budget, Regions: parsed, Pages: pages,
		Day: costs.Default().Buckets()[0].Reset, Job: "trending", Run: "run1",
		Now: s.Now, Log: s.budget.Log,
	}
}

// run sweeps regions without an error, and compares the summary, "partial US:4/200:4
// GB:skipped:0/0:0" (pages/videos:units), and the requests with those wanted.
func (s *env) run(t testing.TB, list string, pages int, want, asked string) ingest.Summary {
	t.Helper()
	sum, err := s.execute(t.Context(), t, s.sweep(t, list, pages), want, asked)
	must(t, err)
	return sum
}

// execute runs the given sweep, compares as run does, and returns the sweep's error.
func (s *env) execute(ctx context.Context, t testing.TB, sweep *ingest.Sweep,
	want, asked string) (ingest.Summary, error) {
	t.Helper()
	sum, err := sweep.Execute(ctx)
	if got := written(sum); got != want {
		t.Errorf("swept\n%s, want\n%s; %v", got, want, err)
	}
	if got := s.requests(); got != asked {
		t.Errorf("asked\n%s, want\n%s", got, asked)
	}
	return sum, err
}

// withReaders returns a sweep with the given number of readers.
func (s *env) withReaders(t testing.TB, list string, pages, readers int) *ingest.Sweep {
	t.Helper()
	sweep := s.sweep(t, list, pages)
	sweep.Parallel = readers
	return sweep
}

// runMany runs a sweep with several readers, which must succeed, and compares the summary. It does
// not compare the requests, because their order varies.
func (s *env) runMany(t testing.TB, sweep *ingest.Sweep, readers int, want string) ingest.Summary {
	t.Helper()
	sweep.Parallel = readers
	sum, err := sweep.Execute(t.Context())
	if err != nil || written(sum) != want {
		t.Errorf("swept\n%s, want\n%s; %v", written(sum), want, err)
	}
	return sum
}

func written(sum ingest.Summary) string {
	parts := []string{string(sum.Outcome)}
	for _, r := range sum.Regions {
		outcome := string(r.Outcome) + ":"
		if r.Outcome == ingest.Complete {
			outcome = ""
		}
		parts = append(parts,
			fmt.Sprintf("%s:%s%d/%d:%d", r.Region, outcome, r.Pages, r.Videos, r.Units))
	}
	return strings.Join(parts, " ")
}

// balanced compares the ledger's units, all labelled, with the stand-in's count.
func (s *env) balanced(t testing.TB) {
	t.Helper()
	query := quota.Query{Credential: "key1", Bucket: "default"}
	entries, err := s.budget.Ledger.Entries(t.Context(), query)
	must(t, err)
	var sum int64
	for _, e := range entries {
		sum += e.Units
		if e.Labels["job"] != "trending" || e.Labels["run"] != "run1" || e.Labels["region"] == "" {
			t.Errorf("labels %v", e.Labels)
		}
	}
	if c := s.standin.Counts(); c.Requests != sum || c.KeyInURL > 0 {
		t.Errorf("the ledger has %d units, the upstream counted %+v", sum, c)
	}
}

// current returns the video IDs of a region's current chart, nil without one.
func (s *env) current(t testing.TB, region string) []string {
	t.Helper()
	_, places, err := s.catalog.Current(context.Background(), region, 0)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		t.Error(err)
	}
	var ids []string
	for _, p := range places {
		ids = append(ids, p.ID)
	}
	return ids
}

// served returns the first n video IDs of a region's chart at the upstream.
func (s *env) served(region string, n int) []string {
	var ids []string
	for _, v := range s.charts.Chart(region, s.charts.Days()-1) {
		ids = append(ids, v.ID)
	}
	return ids[:min(n, len(ids))]
}

// whole checks that a region's current chart is the first n places of the upstream's.
func (s *env) whole(t testing.TB, region string, n int) {
	t.Helper()
	if got, want := s.current(t, region), s.served(region, n); !slices.Equal(got, want) {
		t.Errorf("%s has %d videos, want %d: %v", region, len(got), len(want), got)
	}
}

// isKind reports whether err is a fault of the given kind.
func isKind(err error, want youtube.Kind) bool {
	kind, ok := youtube.KindOf(err)
	return ok && kind == want
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
