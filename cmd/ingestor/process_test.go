package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/cli/clitest"
	"quotabudget/internal/standin"
)

// process is a running program on whose standard error a test can wait.
type process struct {
	*exec.Cmd
	stdout bytes.Buffer
	stderr clitest.Output
	ended  chan struct{}
}

// await waits until the program has written want to standard error.
func (p *process) await(t *testing.T, want string) {
	t.Helper()
	p.stderr.Await(t, p.ended, func(text string) bool { return strings.Contains(text, want) })
}

// begin starts a program with nothing in its environment but PATH and env.
func begin(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = testEnv("HOME="+cmd.Dir, env...)
	p, err := start(cmd)
	must(t, err)
	return p
}

func start(cmd *exec.Cmd) (*process, error) {
	p := &process{Cmd: cmd, ended: make(chan struct{})}
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	err := p.Start()
	go func() {
		p.Wait()
		close(p.ended)
	}()
	return p, err
}

// configFile writes a configuration, and returns its path.
func configFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "quota.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

var served = regexp.MustCompile(`health and metrics are served" address=(\S+)`)

// url returns the daemon's address; "" until it responds.
func (p *process) url() string {
	if found := served.FindStringSubmatch(p.stderr.String()); found != nil {
		return "http://" + found[1] + "/"
	}
	return ""
}

// code waits for the end, and returns the exit code.
func (p *process) code() int {
	<-p.ended
	return p.ProcessState.ExitCode()
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatalf("%v: %s", err, p.stderr.String())
	}
}

// held is a stand-in that delays some requests.
type held struct {
	standin.YouTube
	first, last int64         // numbers of the delayed requests
	arrived     chan struct{} // closed when the last one arrives
	proceed     chan struct{} // closed to release them
	seen        atomic.Int64
}

// holding delays one request.
func holding(t *testing.T, number int64) (h *held, env []string) {
	return holdingAll(t, number, number)
}

// holdingAll delays the requests from first to last.
func holdingAll(t *testing.T, first, last int64) (h *held, env []string) {
	h = &held{first: first, last: last, arrived: make(chan struct{}), proceed: make(chan struct{})}
	return h, []string{"YOUTUBE_ENDPOINT=" + listening(t, h), "YOUTUBE_API_KEY=any",
		"QUOTA_STATE_DIR=" + filepath.Join(t.TempDir(), "state")}
}

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if number := h.seen.Add(1); h.first <= number && number <= h.last {
		if number == h.last {
			close(h.arrived)
		}
		select {
		case <-h.proceed:
		case <-r.Context().Done():
		}
	}
	h.YouTube.ServeHTTP(w, r)
}

const goodbye = "stopping after the current page"

// TestSignalEndsBetweenPages: each reader finishes its page and fetches no other, and the next
// sweep resumes there.
func TestSignalEndsBetweenPages(t *testing.T) {
	for _, c := range []struct {
		parallel    string
		signal      os.Signal
		first, last int64 // requests in flight at the signal
		want        string
		all         int64 // requests, including the next sweep's
	}{
		{"1", syscall.SIGINT, 6, 6, "US complete 4 200, GB partial 2 100, DE skipped 0 0", 16},
		{"1", syscall.SIGTERM, 6, 6, "US complete 4 200, GB partial 2 100, DE skipped 0 0", 16},
		{"4", syscall.SIGTERM, 2, 4, "US partial 2 100, GB partial 1 50, DE partial 1 50", 12},
	} {
		t.Run(c.parallel+" "+c.signal.String(), func(t *testing.T) {
			t.Parallel()
			h, env := holdingAll(t, c.first, c.last)
			env = append(env, "QUOTA_CONFIG="+configFile(t, "ingest: {parallel: "+c.parallel+"}\n"))
			once := []string{"once", "--region", "US,GB,DE", "-o", "json"}
			p := begin(t, env, "ingestor", once...)
			<-h.arrived
			p.signal(t, c.signal)
			p.await(t, goodbye)
			close(h.proceed)
			if code := p.code(); code != 1 {
				t.Errorf("exit code %d: %s", code, p.stderr.String())
			}
			got := sweepOf(t, p)
			if got.Outcome != "partial" || got.text() != c.want ||
				got.Units["default"] != c.last || h.Counts().Requests != c.last {
				t.Errorf("%+v after %d requests, want %s", got, h.Counts().Requests, c.want)
			}
			for _, r := range got.Regions {
				if r.Outcome == "partial" && r.Error != "interrupted" {
					t.Errorf("%+v", r)
				}
			}

			again := begin(t, env, "ingestor", once...)
			if code := again.code(); code != 0 {
				t.Fatalf("exit code %d: %s", code, again.stderr.String())
			}
			want := "US complete 4 200, GB complete 4 200, DE complete 4 200"
			if got := sweepOf(t, again); !sameRegions(got.text(), want) ||
				h.Counts().Requests != c.all {
				t.Errorf("resumed: %+v after %d requests", got, h.Counts().Requests)
			}
		})
	}
}

// sameRegions compares the results of regions in any order.
func sameRegions(got, want string) bool {
	a, b := strings.Split(got, ", "), strings.Split(want, ", ")
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	h, env := holding(t, 3)
	p := begin(t, env, "ingestor", "once", "--region", "US", "-o", "json", "--log-level", "debug")
	<-h.arrived
	p.await(t, "region=US page=2 ") // the page is stored
	p.signal(t, syscall.SIGINT)
	p.await(t, goodbye)
	// while the first signal is being handled, a second one has no effect
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; {
		select {
		case <-tick.C:
			p.Process.Signal(syscall.SIGINT)
			if time.Since(begun) > 8*time.Second {
				t.Fatal("still running after 8 s")
			}
			continue
		case <-p.ended:
		}
		break
	}
	if status := p.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() ||
		status.Signal() != syscall.SIGINT {
		t.Errorf("ended by %v", p.ProcessState)
	}

	// charged units stay charged (I3), and the next sweep resumes there
	status := begin(t, env, "quotactl", "status", "-o", "json")
	status.code()
	if !strings.Contains(status.stdout.String(), `"used":3,`) {
		t.Errorf("three requests were charged: %s", status.stdout.String())
	}
	again := begin(t, env, "ingestor", "once", "--region", "US", "-o", "json")
	again.code()
	if got := sweepOf(t, again); got.text() != "US complete 4 200" || got.Units["default"] != 2 {
		t.Errorf("resumed: %+v", got)
	}
}

func TestStandinProgram(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "ingestor", "standin", "--listen", "127.0.0.1:0",
		"--units", "1")
	pipe, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	out := bufio.NewReader(pipe)
	line, err := out.ReadString('\n')
	must(t, err)
	url := strings.TrimSpace(line)
	env := []string{"YOUTUBE_ENDPOINT=" + url, "YOUTUBE_API_KEY=any", "QUOTA_STATE_DIR=" +
		filepath.Join(t.TempDir(), "state")}
	if sweep := begin(t, env, "ingestor", "once", "--region", "US"); sweep.code() != 75 {
		t.Errorf("%v: %s", sweep.ProcessState, sweep.stderr.String())
	}
	taken := begin(t, nil, "ingestor", "standin", "--listen",
		strings.Trim(strings.TrimPrefix(url, "http:"), "/"))
	if taken.code() != 1 || !strings.Contains(taken.stderr.String(),
		"hint: another program is listening there") {
		t.Errorf("a port that is taken: %v: %s", taken.ProcessState, taken.stderr.String())
	}
	must(t, cmd.Process.Signal(syscall.SIGINT))
	var counts standin.YouTubeCounts
	if err := json.NewDecoder(out).Decode(&counts); err != nil || counts.Units["default"] != 1 ||
		counts.Rejected != 1 {
		t.Errorf("last words: %+v, %v", counts, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestClosedOutput runs the program into a closed pipe: it does not panic, and keeps the fetched
// pages.
func TestClosedOutput(t *testing.T) {
	t.Parallel()
	h, env := holding(t, 0)
	r, w, err := os.Pipe()
	must(t, err)
	r.Close()
	cmd := exec.CommandContext(t.Context(), "ingestor", "once", "--region", "US")
	var stderr bytes.Buffer
	cmd.Env = testEnv("", env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), w, &stderr
	if err := cmd.Run(); err == nil || strings.Contains(stderr.String(), "goroutine") {
		t.Errorf("%v: %s", err, stderr.String())
	}
	w.Close()
	chart := begin(t, env, "ingestor", "chart", "US", "-o", "json")
	if code := chart.code(); code != 0 || h.Counts().Requests != 4 {
		t.Errorf("exit code %d after %d requests: %s", code, h.Counts().Requests,
			chart.stderr.String())
	}
}

// swept is the JSON of a sweep.
type swept struct {
	Outcome string
	Units   map[string]int64
	Regions []struct {
		Region, Outcome, Error string
		Pages, Videos          int
	}
}

func sweepOf(t *testing.T, p *process) (s swept) {
	t.Helper()
	if err := json.Unmarshal(p.stdout.Bytes(), &s); err != nil {
		t.Fatalf("%v: %q, %s", err, p.stdout.String(), p.stderr.String())
	}
	return s
}

// text returns a summary of the regions' results.
func (s swept) text() string {
	var all []string
	for _, r := range s.Regions {
		all = append(all, strings.Join([]string{r.Region, r.Outcome, textOf(float64(r.Pages)),
			textOf(float64(r.Videos))}, " "))
	}
	return strings.Join(all, ", ")
}
