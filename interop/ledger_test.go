//go:build interop

package interop

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// ledgerServer is quotactl serve on a ledger with one limit.
type ledgerServer struct {
	*station
	server   *process
	goClient string // the program of the Go client
}

const hourly = "{bucket: default, units: 100, window: 1h}"

func startLedger(t *testing.T, limit, token string) *ledgerServer {
	t.Helper()
	bin := build(t)
	run(t, root, "go", "build", "-o", filepath.Join(bin, "ledger"), "./interop/testdata/ledger")
	dir := t.TempDir()
	text := "credentials: [{name: a1, limits: [" + limit + "]}]\n"
	if token != "" {
		must(t, os.WriteFile(filepath.Join(dir, "tokens"), []byte("it "+token+" charge\n"), 0o600))
		text += "serve: {token_file: tokens}\n"
	}
	config := filepath.Join(dir, "quota.yaml")
	must(t, os.WriteFile(config, []byte(text), 0o600))
	s := &ledgerServer{station: &station{bin: bin}, goClient: filepath.Join(bin, "ledger")}
	s.env = []string{"QUOTA_CONFIG=" + config, "QUOTA_STATE_DIR=" + dir, "TOKEN=" + token}
	s.start(t, "127.0.0.1:0")
	return s
}

func (s *ledgerServer) start(t *testing.T, address string) {
	t.Helper()
	s.server = launch(t, s.bin, s.env, "quotactl", "serve", "--listen", address)
}

// used returns the units that the log has, and that are held.
func (s *ledgerServer) used(t *testing.T) (used, held int) {
	t.Helper()
	var status struct {
		Credentials []struct {
			Buckets []struct {
				Held   int
				Limits []struct{ Used int }
			}
		}
	}
	must(t, json.Unmarshal(s.quotactl(t, "status", "-o", "json"), &status))
	b := status.Credentials[0].Buckets[0]
	return b.Limits[0].Used, b.Held
}

// client runs a client's steps and returns their words.
func (s *ledgerServer) client(t *testing.T, language, url, journal string, steps ...string) string {
	t.Helper()
	command := map[string][]string{"go": {s.goClient}, "python": {"/usr/bin/python3",
		"testdata/ledger/main.py"}, "node": {"node", "testdata/ledger/main.mjs"}}[language]
	c := exec.Command(command[0], append(append(command[1:], url, journal), steps...)...)
	c.Env = append(os.Environ(), s.env...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Errorf("%s: %v", language, err)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

var languages = []string{"go", "python", "node"}

// TestLedgerClients plays each scenario of recovery with each client: what is in the ledger at its
// end is what the calls used, once.
func TestLedgerClients(t *testing.T) {
	s := startLedger(t, hourly, "a-token-of-some-length")
	front := newLossy(t, s.server.address)
	total := 0
	for _, language := range languages {
		dir := t.TempDir()
		for _, scenario := range []struct {
			name, steps, words string
			lost               int32 // answers that never arrive
			units              int
		}{
			{"plain", "charge=2 hold=5 extend settle=3", "ok ok ok ok", 0, 5},
			{"a call that was never sent", "hold=5 release", "ok ok", 0, 0},
			{"more than was held", "hold=1 settle=2", "ok ok", 0, 2},
			{"larger than the limit", "charge=101 hold=101", "never never", 0, 0},
			{"lost answer of a charge", "charge=1", "ok", 1, 1},
			{"lost answers of a hold", "hold=4", "ok", 2, 0},
			{"nothing to replay", "replay", "ok", 0, 0},
		} {
			front.lost.Store(scenario.lost)
			got := s.client(t, language, front.URL, filepath.Join(dir, "journal"),
				strings.Fields(scenario.steps)...)
			if got != scenario.words {
				t.Errorf("%s: %s: %s, want %s", language, scenario.name, got, scenario.words)
			}
			total += scenario.units
			if used, _ := s.used(t); used != total {
				t.Fatalf("%s: %s: %d units are used, want %d", language, scenario.name, used, total)
			}
		}
	}
	if words := s.client(t, "python", s.server.address, "", "charge=90"); words != "denied" {
		t.Errorf("a charge that does not fit: %s", words)
	}
}

// TestLedgerClientsAway loses every answer to a settlement, or every settlement itself, and
// restarts the server: the journal has what was used, and the client's next process books it once.
func TestLedgerClientsAway(t *testing.T) {
	s := startLedger(t, hourly, "")
	total := 0
	for _, language := range languages {
		for _, arrives := range []bool{true, false} {
			journal := filepath.Join(t.TempDir(), "journal")
			front := newLossy(t, s.server.address)
			front.after, front.dropped = "/settlements", !arrives
			front.lost.Store(100)
			if got := s.client(t, language, front.URL, journal, "hold=9", "settle=4"); got != "ok failed" {
				t.Errorf("%s: %s", language, got)
			}
			s.server.kill()
			s.start(t, strings.Trim(strings.TrimPrefix(s.server.address, "http:"), "/"))
			if got := s.client(t, language, s.server.address, journal, "replay"); got != "ok" {
				t.Errorf("%s: replay: %s", language, got)
			}
			total += 4
			if used, held := s.used(t); used != total || held != 0 {
				t.Errorf("%s, settlements arrive %v: %d units are used and %d held, want %d", language,
					arrives, used, held, total)
			}
			if text, err := os.ReadFile(journal); err != nil || len(text) > 0 {
				t.Errorf("%s: the journal is %q, %v", language, text, err)
			}
		}
	}
}

// TestLedgerTogether has callers in three languages: together they get the limit,
// exactly.
func TestLedgerTogether(t *testing.T) {
	s := startLedger(t, hourly, "")
	var allowed atomic.Int64
	var callers sync.WaitGroup
	for i := range 12 {
		language := languages[i%3]
		callers.Go(func() {
			steps := strings.Fields(strings.Repeat("charge=1 ", 6) + strings.Repeat("hold=2 settle=1 ", 3))
			words := s.client(t, language, s.server.address, filepath.Join(t.TempDir(), "j"), steps...)
			for k, word := range strings.Fields(words) {
				if word == "ok" && !strings.HasPrefix(steps[k], "hold") {
					allowed.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if used, held := s.used(t); int64(used) != allowed.Load() || used > 100 || held != 0 || used < 80 {
		t.Errorf("%d units are used and %d held, the clients report %d of 100", used, held,
			allowed.Load())
	}
}

// lossy is a way to the server that loses answers.
type lossy struct {
	*httptest.Server
	lost    atomic.Int32 // answers that are still to be lost
	after   string       // only answers to these paths are lost; "" for all
	dropped bool         // the requests do not arrive, either
}

func newLossy(t *testing.T, address string) *lossy {
	t.Helper()
	to, err := url.Parse(address)
	must(t, err)
	l := &lossy{}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, l.after) && l.lost.Add(-1) >= 0 {
			if !l.dropped {
				forward.ServeHTTP(httptest.NewRecorder(), r)
			}
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(l.Close)
	return l
}
