//go:build interop

package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// ledgerServer is a running quotactl serve, on a ledger with one limit.
type ledgerServer struct {
	vars   []string // environment of the server, quotactl and the clients
	server *process
}

const hourly = "{bucket: default, units: 100, window: 1h}"

// startLedger starts a server. If ledger is "", it uses a new SQLite file; if tokens is "", it has
// no token file.
func startLedger(t *testing.T, ledger, limits, tokens string) *ledgerServer {
	t.Helper()
	dir := t.TempDir()
	text := "credentials: [{name: a1, limits: [" + limits + "]}]\n"
	if tokens != "" {
		write(t, dir, "tokens", tokens)
		text += "serve: {token_file: tokens}\n"
	}
	s := &ledgerServer{vars: []string{"QUOTA_CONFIG=" + write(t, dir, "quota.yaml", text),
		"QUOTA_STATE_DIR=" + dir, "QUOTA_LEDGER=" + ledger}}
	s.start(t, "127.0.0.1:0")
	return s
}

func (s *ledgerServer) start(t *testing.T, address string) {
	t.Helper()
	s.server = launch(t, s.vars, "quotactl", "serve", "--listen", address)
}

// used returns the units in the log and the held units.
func (s *ledgerServer) used(t *testing.T) (used, held int) {
	t.Helper()
	return s.taken(t, "default")
}

// taken returns the used and the held units of a bucket.
func (s *ledgerServer) taken(t *testing.T, bucket string) (used, held int) {
	t.Helper()
	b := s.bucket(t, bucket)
	return int(b.Limits[0].Used), int(b.Held)
}

// bucket returns the status of a bucket.
func (s *ledgerServer) bucket(t *testing.T, bucket string) report.BucketStatus {
	t.Helper()
	var status report.Status
	quotactl(t, s.vars, &status, "status")
	for _, b := range status.Credentials[0].Buckets {
		if b.Bucket == bucket {
			return b
		}
	}
	t.Fatalf("no bucket %q", bucket)
	return report.BucketStatus{}
}

// player is a process of a client. It prints a word for each of its steps.
type player struct{ *exec.Cmd }

func (s *ledgerServer) player(language, url, journal string, steps ...string) *player {
	command := map[string][]string{"go": {"ledger"}, "python": {python,
		"testdata/ledger/main.py"}, "node": {"node", "testdata/ledger/main.mjs"},
		"sh": {"sh", "testdata/ledger/main.sh"}}[language]
	c := exec.Command(command[0], append(append(command[1:], url, journal), steps...)...)
	c.Env, c.Stderr = append(os.Environ(), s.vars...), os.Stderr
	return &player{c}
}

// words runs the client and returns the words that it prints.
func (p *player) words() (string, error) {
	out, err := p.Output()
	return strings.Join(strings.Fields(string(out)), " "), err
}

// kill ends the process as kill -9 does.
func (p *player) kill() { p.Process.Kill() }

// languages are those with a client that keeps a journal.
var languages = []string{"go", "python", "node"}

// team holds the label and the token of some callers, and the units that they may take.
type team struct {
	name, token string
	part        int
}

var teams = []team{{"ci", "ci-token-of-24-characters", 50},
	{"web", "web-token-of-24-characters", 40}, {"docs", "docs-token-of-24-characters", 30}}

// TestTeams has a hundred callers in four languages, for three teams: each team gets exactly its
// part or, if the whole limit is smaller, together they get exactly the whole.
func TestTeams(t *testing.T) {
	t.Parallel()
	var tokens strings.Builder
	for _, team := range teams {
		fmt.Fprintf(&tokens, "%s %s charge label=team=%[1]s\n", team.name, team.token)
	}
	for name, ledger := range map[string]func(t *testing.T) string{
		"sqlite": func(*testing.T) string { return "" },
		"redis":  func(t *testing.T) string { return redistest.Start(t, redistest.Options{}).URL() },
	} {
		for _, whole := range []int{200, 100} {
			t.Run(fmt.Sprintf("%s, %d units", name, whole), func(t *testing.T) {
				s := startLedger(t, ledger(t), fmt.Sprintf(`{bucket: default, units: %d, window: 1h},
  {bucket: default, per: label:team, units: 30, parts: {ci: 50, web: 40}, window: 1h}`, whole),
					tokens.String())
				s.haveTeams(t, whole)
			})
		}
	}
}

// haveTeams makes the callers of all teams request more units than there are.
func (s *ledgerServer) haveTeams(t *testing.T, whole int) {
	var callers sync.WaitGroup
	var reported [3]atomic.Int64
	call := func(i int, steps string) {
		p := s.player(append(languages, "sh")[i/3%4], s.server.address,
			filepath.Join(t.TempDir(), "journal"), strings.Fields(steps)...)
		p.Env = append(p.Env, "TOKEN="+teams[i%3].token)
		text, err := p.words()
		if err != nil || strings.Contains(text, "failed") {
			t.Errorf("%v: %q, %v", p.Args[0], text, err)
		}
		for k, word := range strings.Fields(text) {
			if word == "ok" && !strings.HasPrefix(strings.Fields(steps)[k], "hold") {
				reported[i%3].Add(1)
			}
		}
	}
	for i := range 100 {
		callers.Go(func() { call(i, "charge=1 hold=3 settle=1 charge=1") })
	}
	callers.Wait()
	for i := range 3 { // take the units that holds had kept from other callers
		call(4*i, strings.Repeat("charge=1 ", 50))
	}
	sum := 0
	for i, team := range teams {
		used, held := s.taken(t, quota.LabelBucket("default", "team", team.name))
		if sum += used; used > team.part || held != 0 || int64(used) != reported[i].Load() {
			t.Errorf("%s: %d of %d units are used and %d held; its callers report %d", team.name, used,
				team.part, held, reported[i].Load())
		}
	}
	if all, _ := s.used(t); all != sum || sum != min(120, whole) {
		t.Errorf("%d units are used, %d by the teams", all, sum)
	}
}

// TestNoJournal has each client settle although its journal cannot be written.
func TestNoJournal(t *testing.T) {
	s := startLedger(t, "", hourly, "")
	for i, language := range languages {
		journal := filepath.Join(t.TempDir(), "missing", "journal")
		words, err := s.player(language, s.server.address, journal, "hold=9", "settle=4").words()
		if used, held := s.used(t); err != nil || words != "ok ok" || used != 4*(i+1) || held != 0 {
			t.Errorf("%s: %q, %v; %d units are used and %d held", language, words, err, used, held)
		}
	}
}

// TestServerKilled kills the server ten times while callers in three languages settle. Once each
// has replayed its journal, the ledger has every settlement.
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
				for i := 1; i < len(words); i += 2 { // failed steps are in the journal
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
		s.used(t) // some calls are in progress
		s.server.kill()
		s.used(t) // some clients give up
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
