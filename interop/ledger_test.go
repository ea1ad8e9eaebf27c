//go:build interop

package interop

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// startLedger starts a server. The URL of its ledger may be "" for a SQLite file of its own.
func startLedger(t *testing.T, ledger, limit, token string) *ledgerServer {
	t.Helper()
	bin := build(t)
	dir := t.TempDir()
	text := "credentials: [{name: a1, limits: [" + limit + "]}]\n"
	if token != "" {
		must(t, os.WriteFile(filepath.Join(dir, "tokens"), []byte("it "+token+" charge\n"), 0o600))
		text += "serve: {token_file: tokens}\n"
	}
	config := filepath.Join(dir, "quota.yaml")
	must(t, os.WriteFile(config, []byte(text), 0o600))
	s := &ledgerServer{station: &station{bin: bin}, goClient: filepath.Join(bin, "ledger")}
	s.env = []string{"QUOTA_CONFIG=" + config, "QUOTA_STATE_DIR=" + dir, "TOKEN=" + token,
		"QUOTA_LEDGER=" + ledger}
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

// player is a run of a client, which prints a word for each of its steps.
type player struct{ *exec.Cmd }

func (s *ledgerServer) player(language, url, journal string, steps ...string) *player {
	command := map[string][]string{"go": {s.goClient}, "python": {python,
		"testdata/ledger/main.py"}, "node": {"node", "testdata/ledger/main.mjs"}}[language]
	c := exec.Command(command[0], append(append(command[1:], url, journal), steps...)...)
	c.Env, c.Stderr = append(os.Environ(), s.env...), os.Stderr
	return &player{c}
}

// words runs the client.
func (p *player) words() (string, error) {
	out, err := p.Output()
	return strings.Join(strings.Fields(string(out)), " "), err
}

// kill ends it as kill -9 does.
func (p *player) kill() { p.Process.Kill() }

var languages = []string{"go", "python", "node"}

// TestTogether has callers in three languages: together they get the limit, exactly.
func TestTogether(t *testing.T) {
	s := startLedger(t, "", hourly, "")
	var allowed atomic.Int64
	var callers sync.WaitGroup
	for i := range 12 {
		journal := filepath.Join(t.TempDir(), "j")
		callers.Go(func() {
			steps := strings.Fields(strings.Repeat("charge=1 ", 6) + strings.Repeat("hold=2 settle=1 ", 3))
			words, err := s.player(languages[i%3], s.server.address, journal, steps...).words()
			if err != nil {
				t.Error(err)
			}
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

// TestServerKilled kills the server ten times while callers in three languages settle. Once each has
// replayed its journal, the ledger has every settlement.
func TestServerKilled(t *testing.T) {
	s := startLedger(t, "", "{bucket: default, units: 100000, window: 1h}", "")
	address := s.server.address
	play := func(language, journal string, steps ...string) (words []string) {
		text, err := s.player(language, address, journal, steps...).words()
		if err != nil {
			t.Errorf("%s: %v", language, err)
		}
		return strings.Fields(text)
	}
	var settled, failed atomic.Int64
	var callers sync.WaitGroup
	ended, end := context.WithCancel(t.Context())
	defer end()
	journals := make(map[string]string) // of a language
	for _, language := range languages {
		journal := filepath.Join(t.TempDir(), "journal")
		journals[language] = journal
		callers.Go(func() {
			for ended.Err() == nil {
				words := play(language, journal, strings.Fields(strings.Repeat("hold=2 settle=1 ", 10))...)
				for i := 1; i < len(words); i += 2 { // what failed is in the journal
					switch words[i] {
					case "ok":
						settled.Add(1)
					case "failed":
						failed.Add(1)
					}
				}
			}
		})
	}
	for range 10 {
		s.used(t) // some of them are under way
		s.server.kill()
		s.used(t) // some of them give up
		s.start(t, strings.Trim(strings.TrimPrefix(address, "http:"), "/"))
	}
	end()
	callers.Wait()
	for language, journal := range journals {
		if words := play(language, journal, "replay"); !slices.Equal(words, []string{"ok"}) {
			t.Errorf("%s: replay: %s", language, words)
		}
	}
	used, _ := s.used(t)
	t.Logf("%d settlements, %d of them replayed", used, failed.Load())
	if want := settled.Load() + failed.Load(); int64(used) != want || settled.Load() == 0 {
		t.Errorf("%d units are used, and %d calls were settled", used, want)
	}
}
