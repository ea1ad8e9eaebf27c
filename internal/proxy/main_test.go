package proxy_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
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
	proxy *proxy.Proxy
	front front
}

// open starts a proxy; change sets it up before its first request.
func open(t testing.TB, limits []quota.Limit, change ...func(*env)) *env {
	t.Helper()
	s := &env{Env: metertest.Open(t, &standin.YouTube{}, limits)}
	to, err := url.Parse(s.Server.URL)
	must(t, err)
	s.proxy = &proxy.Proxy{Upstreams: []*proxy.Upstream{{Name: "youtube",
		Transport: s.Transport, Endpoint: to}}, Limits: proxy.DefaultLimits(),
		Metrics: proxy.NewMetrics(), Log: s.Transport.Log}
	for _, f := range change {
		f(s)
	}
	s.front = serve(t, s.proxy, "127.0.0.1:0")
	return s
}

// front is the address of the proxy.
type front struct {
	URL      string
	Listener net.Listener
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
	return front{"http://" + listener.Addr().String(), listener}
}

// origins allows a web page.
func origins(s *env) { s.proxy.Origins = []string{"https://dashboard.example"} }

// get sends a GET to the proxy, with pairs of header names and values.
func (s *env) get(t testing.TB, path string, header ...string) answer {
	t.Helper()
	return s.do(t, http.MethodGet, path, "", header...)
}

// do sends a request to the proxy. A header Host sets the request's Host.
func (s *env) do(t testing.TB, verb, path, body string, header ...string) answer {
	t.Helper()
	return read(t, newRequest(t.Context(), verb, s.front.URL+path, body, header))
}

// newRequest returns a request with pairs of header names and values.
func newRequest(ctx context.Context, verb, url, body string, header []string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, verb, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	r.Host = cmp.Or(r.Header.Get("Host"), r.Host)
	return r
}

// answer is a response of the proxy.
type answer struct {
	status int
	header http.Header
	body   string
}

// get sends a GET to an address.
func get(t testing.TB, url string) answer {
	t.Helper()
	return read(t, newRequest(t.Context(), http.MethodGet, url, "", nil))
}

func read(t testing.TB, r *http.Request) answer {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
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

// local returns the address on which the proxy listens.
func (s *env) local() string { return s.front.Listener.Addr().(*net.TCPAddr).String() }

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
