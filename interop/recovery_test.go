//go:build interop

package interop

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.yaml.in/yaml/v3"

	"quotabudget/internal/ledger/redistest"
)

// scenario is a scenario of testdata/ledger/recovery.yaml.
type scenario struct {
	Name, Fault, At, Steps, Words, Next string
	Times, Used, Held                   int
}

// TestRecovery runs each scenario with each client: at the end, the ledger has the usage of the
// calls, once.
func TestRecovery(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/ledger/recovery.yaml")
	must(t, err)
	defer file.Close()
	var scenarios []scenario
	in := yaml.NewDecoder(file)
	in.KnownFields(true)
	must(t, in.Decode(&scenarios))
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			playAll(t, language, scenarios)
		})
	}
}

// playAll plays the scenarios with the client in one language, on a ledger of its own.
func playAll(t *testing.T, language string, scenarios []scenario) {
	redis := newReplicated(t)
	s := startLedger(t, redis.URL(), "{bucket: default, units: 1000, window: 1h}",
		"it a-token-of-some-length charge\n")
	s.vars = append(s.vars, "TOKEN=a-token-of-some-length")
	f := newFaulty(t, s, redis)
	var used, held int
	for _, c := range scenarios {
		journal := filepath.Join(t.TempDir(), "journal")
		f.begin(t, c)
		if got := f.play(t, language, journal, strings.Fields(c.Steps)...); got != c.Words {
			t.Errorf("%s: %q, want %q", c.Name, got, c.Words)
		}
		f.end(t)
		if c.Next != "" {
			got := f.play(t, language, journal, "replay")
			for c.Fault == "away" && got == "failed" { // until the server has reconnected
				got = f.play(t, language, journal, "replay")
			}
			if text, err := os.ReadFile(journal); got != c.Next || len(text) > 0 {
				t.Errorf("%s: replay: %q; the journal is %q, %v", c.Name, got, text, err)
			}
		}
		used, held = used+c.Used, held+c.Held
		if u, h := s.used(t); u != used || h != held {
			t.Fatalf("%s: %d units are used and %d held, want %d and %d", c.Name, u, h, used, held)
		}
	}
}

// replicated is a Redis server with a replica that has the data as of the last copy.
type replicated struct {
	*redistest.Server
	replica *redistest.Server
}

func newReplicated(t *testing.T) *replicated {
	t.Helper()
	args := []string{"--repl-diskless-sync-delay", "0"}
	return &replicated{redistest.Start(t, redistest.Options{AOF: true, Args: args}),
		redistest.Start(t, redistest.Options{Args: args})}
}

// copy copies the data of one server to another.
func (*replicated) copy(t *testing.T, to, from *redistest.Server) {
	t.Helper()
	admin := redis.NewClient(&redis.Options{Addr: to.Addr})
	defer admin.Close()
	host, port, err := net.SplitHostPort(from.Addr)
	must(t, err)
	must(t, admin.ReplicaOf(t.Context(), host, port).Err())
	for !strings.Contains(admin.Info(t.Context(), "replication").Val(), "master_link_status:up") {
		time.Sleep(10 * time.Millisecond)
	}
	must(t, admin.ReplicaOf(t.Context(), "NO", "ONE").Err())
}

// faulty is a proxy in front of the server, with the faults of a scenario.
type faulty struct {
	*httptest.Server
	ledger *ledgerServer
	redis  *replicated

	mu      sync.Mutex
	forward http.Handler // to the running server
	now     scenario
	left    int // remaining requests that the fault affects
	player  *player
}

func newFaulty(t *testing.T, s *ledgerServer, redis *replicated) *faulty {
	t.Helper()
	f := &faulty{ledger: s, redis: redis}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.left == 0 || !strings.HasSuffix(r.URL.Path, f.now.At) {
			f.forward.ServeHTTP(w, r)
			return
		}
		f.left--
		f.fail(t, w, r)
	}))
	t.Cleanup(f.Close)
	f.aim(t)
	return f
}

// aim forwards requests to the running server.
func (f *faulty) aim(t *testing.T) {
	to, err := url.Parse(f.ledger.server.address)
	must(t, err)
	f.forward = &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

func (f *faulty) begin(t *testing.T, c scenario) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Fault == "failover" {
		f.redis.copy(t, f.redis.replica, f.redis.Server)
	}
	f.now, f.left = c, max(c.Times, 1)
	if c.Fault == "" {
		f.left = 0
	}
}

// end ends the scenario's fault, and fails the test if it affected no request.
func (f *faulty) end(t *testing.T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now.Fault != "" && f.left == max(f.now.Times, 1) {
		t.Errorf("%s: the fault did not happen", f.now.Name)
	}
	f.left = 0
	if f.now.Fault == "away" {
		f.redis.Restart(t)
	}
}

func (f *faulty) play(t *testing.T, language, journal string, steps ...string) string {
	t.Helper()
	p := f.ledger.player(language, f.URL, journal, steps...)
	f.mu.Lock()
	f.player = p
	f.mu.Unlock()
	words, err := p.words()
	if killed := f.now.Fault == "client" || f.now.Fault == "booked"; err != nil && !killed {
		t.Errorf("%s: %v", f.now.Name, err)
	}
	return words
}

// fail applies the scenario's fault to a request.
func (f *faulty) fail(t *testing.T, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	must(t, err)
	send := func(w http.ResponseWriter) {
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		f.forward.ServeHTTP(w, again)
	}
	switch f.now.Fault {
	case "answer":
		send(httptest.NewRecorder())
	case "twice":
		send(httptest.NewRecorder())
		send(w)
		return
	case "page":
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "<h1>Not Found</h1>")
		return
	case "moved":
		http.Redirect(w, r, "/v1/elsewhere", http.StatusFound)
		return
	case "portal":
		io.WriteString(w, `{"status":"ok"}`)
		return
	case "cut":
		whole := httptest.NewRecorder()
		send(whole)
		w.Header().Set("Content-Length", strconv.Itoa(whole.Body.Len()))
		w.WriteHeader(whole.Code)
		w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
		http.NewResponseController(w).Flush()
	case "slow":
		w.WriteHeader(http.StatusRequestTimeout)
		io.WriteString(w, `{"title":"Request Timeout","status":408,"detail":"body read timeout"}`)
		return
	case "gateway":
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, "null")
		return
	case "restart":
		f.ledger.server.kill()
		f.ledger.start(t, "127.0.0.1:0")
		f.aim(t)
	case "killed":
		var done sync.WaitGroup
		done.Go(func() {
			defer func() { _ = recover() }() // the response is cut off
			send(httptest.NewRecorder())
		})
		f.ledger.server.kill()
		done.Wait()
		f.ledger.start(t, "127.0.0.1:0")
		f.aim(t)
	case "client":
		f.player.kill()
	case "booked":
		send(httptest.NewRecorder())
		f.player.kill()
	case "failover":
		f.redis.copy(t, f.redis.Server, f.redis.replica)
		send(httptest.NewRecorder())
	case "away":
		f.redis.Kill()
		f.left = 0
		send(w)
		return
	}
	panic(http.ErrAbortHandler)
}
