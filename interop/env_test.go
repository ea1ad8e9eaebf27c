//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/cli/clitest"
)

// env is a proxy with a ledger of its own, in front of a stand-in of its own.
type env struct {
	proxy, standin string
	vars           []string // environment of quotactl
}

func TestMain(m *testing.M) {
	os.Exit(clitest.Main{M: m, Packages: []string{"quotabudget/cmd/...",
		"quotabudget/interop/testdata/ledger"}}.Run())
}

// root is where the module is.
const root = ".."

// The stand-in accepts this key, which no client sends, and for uploads this token, which clients
// send.
const (
	key   = "key-of-the-proxy"
	token = "token-of-a-user"
)

func start(t *testing.T) *env {
	t.Helper()
	config, err := filepath.Abs("testdata/quota.yaml")
	must(t, err)
	standin := launch(t, nil, "ingestor", "standin", "--listen", "127.0.0.1:0", "--key", key,
		"--token", token).address
	vars := []string{"QUOTA_CONFIG=" + config, "QUOTA_STATE_DIR=" + t.TempDir(),
		"YOUTUBE_ENDPOINT=" + standin, "YOUTUBE_API_KEY=" + key}
	proxy := launch(t, vars, "quotactl", "proxy", "--listen", "127.0.0.1:0").address
	return &env{proxy, standin, vars}
}

// quotactl runs quotactl and reads its JSON.
func quotactl(t *testing.T, vars []string, into any, args ...string) {
	t.Helper()
	args = append([]string{"quotactl", "-o", "json"}, args...)
	must(t, json.Unmarshal(run(t, root, "env", append(vars, args...)...), into))
}

// entry is one entry of a ledger's log.
type entry struct {
	ID, Bucket string
	Units      int64
	Labels     map[string]string
}

// entries returns the entries of a ledger.
func entries(t *testing.T, vars []string, args ...string) []entry {
	t.Helper()
	var log struct{ Entries []entry }
	quotactl(t, vars, &log, append([]string{"log"}, args...)...)
	return log.Entries
}

// launchStandins starts stand-ins, each with its own arguments and those in all. It returns their
// addresses by name, and the part of a configuration with their endpoints.
func launchStandins(t *testing.T, args map[string][]string, all ...string) (
	addresses map[string]string, config string) {
	t.Helper()
	addresses, config = map[string]string{}, "upstreams:\n"
	for name, own := range args {
		command := slices.Concat([]string{"standin", name, "--listen", "127.0.0.1:0"}, all, own)
		addresses[name] = launch(t, nil, "quotactl", command...).address
		config += fmt.Sprintf("  %s: {endpoint: %q}\n", name, addresses[name])
	}
	return addresses, config
}

// eventually waits until done returns true. After two minutes, it fails and reports the state.
func eventually(t *testing.T, done func() bool, state func() any) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not done after two minutes: %+v", state())
		}
	}
}

// counts reads what a stand-in has counted.
func counts(t *testing.T, standin string, into any) {
	t.Helper()
	resp, err := http.Get(standin + "standin/counts")
	must(t, err)
	defer resp.Body.Close()
	must(t, json.NewDecoder(resp.Body).Decode(into))
}

// must ends a test that cannot go on after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
