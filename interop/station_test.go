//go:build interop

package interop

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// station is a proxy with a ledger of its own, in front of a stand-in of its own.
type station struct {
	proxy, standin string
	bin            string
	env            []string
}

// programs is the folder of both programs and of the Go client of the ledger.
var programs string

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "interop"); err != nil {
		log.Fatal(err)
	}
	code := m.Run()
	os.RemoveAll(programs)
	os.Exit(code)
}

// built builds the programs once for all tests.
var built = sync.OnceValues(func() ([]byte, error) {
	c := exec.Command("go", "build", "-o", programs, "./cmd/quotactl", "./cmd/ingestor",
		"./interop/testdata/ledger")
	c.Dir = root
	return c.CombinedOutput()
})

// build returns the folder of the programs, as they are now.
func build(t *testing.T) string {
	t.Helper()
	if out, err := built(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return programs
}

// root is where the module is.
const root = ".."

// What the stand-in takes: not the key that a client sends, and for uploads the token that it does.
const (
	key   = "key-of-the-proxy"
	token = "token-of-a-user"
)

func start(t *testing.T, bin string) *station {
	t.Helper()
	config, err := filepath.Abs("testdata/quota.yaml")
	must(t, err)
	s := &station{bin: bin}
	s.standin = s.serve(t, "ingestor", "standin", "--listen", "127.0.0.1:0",
		"--key", key, "--token", token)
	s.env = []string{
		"QUOTA_CONFIG=" + config, "QUOTA_STATE_DIR=" + t.TempDir(),
		"YOUTUBE_ENDPOINT=" + s.standin, "YOUTUBE_API_KEY=" + key,
	}
	s.proxy = s.serve(t, "quotactl", "proxy", "--listen", "127.0.0.1:0")
	return s
}

// serve starts a program with the station's environment and returns its address.
func (s *station) serve(t *testing.T, program string, args ...string) string {
	t.Helper()
	return launch(t, s.bin, s.env, program, args...).address
}

func (s *station) quotactl(t *testing.T, args ...string) []byte {
	t.Helper()
	return run(t, root, "env", append(append(s.env, filepath.Join(s.bin, "quotactl")), args...)...)
}

// counts are what the stand-in has counted.
func (s *station) counts(t *testing.T, into any) {
	t.Helper()
	resp, err := http.Get(s.standin + "standin/counts")
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
