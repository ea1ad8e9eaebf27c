package proxy_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/proxy"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

const (
	canary     = metertest.Key
	chart      = metertest.Chart
	categories = metertest.Categories
	search     = metertest.Search
	rate       = metertest.Rate
)

var (
	noon  = metertest.Noon
	units = metertest.Units
	must  = metertest.Must
)

// env is a proxy between a program and the stand-in, on a SQLite ledger.
type env struct {
	*metertest.Env
	front
	proxy *proxy.Proxy
}

// open starts a proxy; change sets it up before its first request.
func open(t testing.TB, limits []quota.Limit, change ...func(*env)) *env {
	t.Helper()
	s := &env{Env: metertest.Open(t, &standin.YouTube{}, limits)}
	s.proxy = &proxy.Proxy{Upstreams: []*proxy.Upstream{{Name: "youtube",
		Transport: s.Transport}}, Limits: proxy.DefaultLimits(),
		Metrics: proxy.NewMetrics(), Log: s.Transport.Log}
	for _, f := range change {
		f(s)
	}
	s.front = serve(t, s.proxy, "127.0.0.1:0")
	return s
}

// front is the address of a proxy, and the client to call it with.
type front struct {
	URL    string
	local  string       // host and port that it listens on
	client *http.Client // http.DefaultClient by default
}

// serve starts the proxy as its program does, for as long as the test runs.
func serve(t testing.TB, p *proxy.Proxy, address string) front {
	t.Helper()
	listener, err := proxy.Listen(address)
	must(t, err)
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
	return front{URL: "http://" + listener.Addr().String(), local: listener.Addr().String()}
}

// origins allows a web page.
func origins(s *env) { s.proxy.Origins = []string{"https://dashboard.example"} }

// get sends a GET to the proxy, with pairs of header names and values.
func (f front) get(t testing.TB, path string, header ...string) answer {
	t.Helper()
	return f.do(t, http.MethodGet, path, "", header...)
}

// do sends a request to the proxy and reads the response to its end.
func (f front) do(t testing.TB, verb, path, body string, header ...string) answer {
	t.Helper()
	return read(t)(f.send(t.Context(), verb, path, body, header...))
}

// send sends a request to the proxy. A header Host sets the request's Host.
func (f front) send(ctx context.Context, verb, path, body string, header ...string) (
	*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, verb, f.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	return cmp.Or(f.client, http.DefaultClient).Do(r)
}

// post sends JSON to the proxy.
func (f front) post(ctx context.Context, path, body string, header ...string) (
	*http.Response, error) {
	return f.send(ctx, http.MethodPost, path, body, append(header,
		"Content-Type", "application/json", "Anthropic-Version", "2023-06-01")...)
}

// ask sends JSON to the proxy and reads the response to its end.
func (f front) ask(t testing.TB, path, body string, header ...string) answer {
	t.Helper()
	return read(t)(f.post(t.Context(), path, body, header...))
}

// answer is a response of the proxy.
type answer struct {
	status int
	header http.Header
	body   string
}

// read returns a function that reads a response to its end. An error ends the test.
func read(t testing.TB) func(*http.Response, error) answer {
	t.Helper()
	return func(resp *http.Response, err error) answer {
		t.Helper()
		must(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		must(t, err)
		return answer{resp.StatusCode, resp.Header, string(body)}
	}
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
	Type                 string
	Violated             []string `json:"violated-policies"`
	Status               int
	RetryAt              string         `json:"retry_at"`
	Charged              map[string]int `json:"charged"`
}

// limits reports RateLimit fields that are not as wanted.
func (a answer) limits(t testing.TB, policies, limits string) {
	t.Helper()
	if got := a.header.Get("RateLimit-Policy"); got != policies {
		t.Errorf("RateLimit-Policy: %s, want %s", got, policies)
	}
	if got := a.header.Get("RateLimit"); got != limits {
		t.Errorf("RateLimit: %s, want %s", got, limits)
	}
}

// refused checks that the response is a refusal with this status, and returns its problem.
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

// awaitUsed waits until the ledger has that many units.
func (s *env) awaitUsed(t testing.TB, want int64) {
	t.Helper()
	await(t, func() bool { return s.Used(t) >= want })
	if used := s.Used(t); used != want {
		t.Errorf("the ledger has %d units, want %d", used, want)
	}
}

// await waits until a condition holds.
func await(t testing.TB, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition never held")
		}
	}
}
