//go:build browser

package browser

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/standin"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// program is the path of ingestor, built by TestMain.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "browser")
	if err == nil {
		program = filepath.Join(dir, "ingestor")
		build := exec.Command("go", "build", "-o", program, "./cmd/ingestor")
		build.Dir, build.Stderr = root, os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// env is the program with a state folder of its own.
type env struct {
	*testing.T
	state string
	vars  []string // environment of the program
}

func newEnv(t *testing.T, vars ...string) *env {
	t.Helper()
	dir := t.TempDir()
	s := &env{T: t, state: filepath.Join(dir, "state")}
	s.vars = append(vars, "HOME="+dir, "PATH="+os.Getenv("PATH"), "QUOTA_STATE_DIR="+s.state,
		"QUOTA_CONFIG=/dev/null")
	return s
}

// start starts the program until the test ends, and returns the address that it prints.
func (s *env) start(args ...string) string {
	s.Helper()
	cmd := exec.Command(program, args...)
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
		for err := error(nil); err == nil; { // what it prints at its end
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

// ends runs the program, which must exit with a code.
func (s *env) ends(code int, args ...string) {
	s.Helper()
	cmd := exec.Command(program, args...)
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

// realCharts fills the catalogue with the real charts, three hours a day; it returns the regions,
// none where there are no real charts.
func (s *env) realCharts(c *catalog.Catalog) (regions []string) {
	s.Helper()
	data := standin.SharedData(os.Getenv("QUOTA_SHARED_DATA"), "trending")
	if data == "" {
		s.Log("no real charts here: generated ones only")
		return nil
	}
	charts, err := standin.LoadDir(data)
	must(s, err)
	for day := range charts.Days() {
		at := time.Now().Add(-time.Duration(charts.Days()-1-day) * 3 * time.Hour)
		for _, region := range charts.Regions(day) {
			store(s.T, c, region, at, videosOf(s.T, charts.Chart(region, day)))
			regions = append(regions, region)
		}
	}
	slices.Sort(regions)
	return slices.Compact(regions)
}

func videosOf(t *testing.T, list []*standin.Video) (all []catalog.Video) {
	t.Helper()
	for _, v := range list {
		published, err := time.Parse(time.RFC3339, v.PublishedAt)
		must(t, err)
		all = append(all, catalog.Video{ID: v.ID, Title: v.Title, ChannelID: v.ChannelID,
			ChannelTitle: v.ChannelTitle, Category: v.CategoryID, Description: v.Description,
			Duration: v.Duration, Tags: v.Tags, PublishedAt: published, Views: v.ViewCount,
			Likes: v.LikeCount, Comments: v.CommentCount})
	}
	return all
}
