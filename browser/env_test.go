//go:build browser

package browser

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli/clitest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	os.Exit(clitest.Main{M: m, Packages: []string{"quotabudget/cmd/ingestor"}}.Run())
}

// env runs the program with its own state folder.
type env struct {
	*testing.T
	state string
	vars  []string // environment of the program
}

func newEnv(t *testing.T) *env {
	t.Helper()
	dir := t.TempDir()
	s := &env{T: t, state: filepath.Join(dir, "state")}
	s.vars = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "QUOTA_STATE_DIR=" + s.state,
		"QUOTA_CONFIG=/dev/null"}
	return s
}

// start starts the program until the test ends, and returns the address that it prints.
func (s *env) start(args ...string) string {
	s.Helper()
	cmd := exec.Command("ingestor", args...)
	cmd.Env = s.vars
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	must(s, err)
	must(s, cmd.Start())
	in := bufio.NewReader(out)
	address, err := in.ReadString('\n')
	s.Cleanup(func() {
		must(s, cmd.Process.Signal(syscall.SIGTERM))
		for err := error(nil); err == nil; { // what it prints before it exits
			_, err = in.ReadString('\n')
		}
		if err := cmd.Wait(); err != nil || s.Failed() {
			s.Errorf("ingestor %v: %v\n%s", args, err, stderr.String())
		}
	})
	if err != nil {
		s.Fatalf("%v\n%s", err, stderr.String())
	}
	return strings.TrimSuffix(strings.TrimSpace(address), "/")
}

// run runs the program, which must succeed.
func (s *env) run(args ...string) {
	s.Helper()
	s.ends(0, args...)
}

// ends runs the program, which must exit with the given code.
func (s *env) ends(code int, args ...string) {
	s.Helper()
	cmd := exec.Command("ingestor", args...)
	cmd.Env = s.vars
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		s.Fatalf("ingestor %v: %v, code %d, want %d\n%s", args, err, got, code, out)
	}
}

// demo starts a server with the data of the demo.
func (s *env) demo() string {
	s.Helper()
	return s.start("serve", "--demo", "--listen", "127.0.0.1:0")
}

// upstream starts a stand-in, to which the program sends its requests.
func (s *env) upstream(args ...string) {
	s.Helper()
	address := s.start(append([]string{"standin", "--listen", "127.0.0.1:0"}, args...)...)
	s.vars = append(s.vars, "YOUTUBE_ENDPOINT="+address+"/", "YOUTUBE_API_KEY=any")
}

// catalog opens the catalogue of the state folder.
func (s *env) catalog() *catalog.Catalog {
	s.Helper()
	must(s, os.MkdirAll(s.state, 0o755))
	c, err := catalog.Open(s.Context(), "sqlite://"+filepath.Join(s.state, "catalog.db"))
	must(s, err)
	s.Cleanup(func() { must(s, c.Close()) })
	return c
}

// store stores a complete chart.
func store(t *testing.T, c *catalog.Catalog, region string, at time.Time, videos []catalog.Video) {
	t.Helper()
	_, _, err := c.Begin(t.Context(), region, at.Format("run-0215"), 0,
		catalog.Page{Videos: videos, FetchedAt: at, Last: true})
	must(t, err)
}
