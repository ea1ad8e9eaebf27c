package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/youtube/youtubetest"
)

// process is a running program whose standard error can be waited upon.
type process struct {
	*exec.Cmd
	stdout bytes.Buffer
	stderr watched
	ended  chan struct{}
}

// watched keeps what is written, and tells who waits for a certain text.
type watched struct {
	mu   sync.Mutex
	more chan struct{} // closed by the next write
	text []byte
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	if w.more != nil {
		close(w.more)
		w.more = nil
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}

// await waits until want was written.
func (w *watched) await(t *testing.T, want string, ended <-chan struct{}) {
	t.Helper()
	for {
		w.mu.Lock()
		found := bytes.Contains(w.text, []byte(want))
		if w.more == nil {
			w.more = make(chan struct{})
		}
		more := w.more
		w.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-ended:
			t.Fatalf("ended without %q: %s", want, w.String())
		}
	}
}

// begin starts a program with nothing in its environment but PATH and env.
func begin(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), name, args...), ended: make(chan struct{})}
	p.Dir = t.TempDir()
	p.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Dir}, env...)
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.Wait()
		close(p.ended)
	}()
	return p
}

// code waits for the end, and returns the exit code.
func (p *process) code() int {
	<-p.ended
	return p.ProcessState.ExitCode()
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// held is a stand-in that keeps some requests waiting.
type held struct {
	youtubetest.Server
	first, last int64         // that wait, by their numbers
	arrived     chan struct{} // closed when the last has come
	proceed     chan struct{} // closed to answer them
	seen        atomic.Int64
}

// holding keeps one request waiting.
func holding(t *testing.T, number int64) (h *held, env []string) {
	return holdingAll(t, number, number)
}

// holdingAll keeps the requests from first to last waiting.
func holdingAll(t *testing.T, first, last int64) (h *held, env []string) {
	h = &held{first: first, last: last, arrived: make(chan struct{}), proceed: make(chan struct{})}
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return h, []string{"YOUTUBE_ENDPOINT=" + web.URL, "YOUTUBE_API_KEY=any", "QUOTA_STATE_DIR=" +
		filepath.Join(t.TempDir(), "state")}
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
	h.Server.ServeHTTP(w, r)
}

const goodbye = "ending after the page under way"

// oneByOne is a configuration by which ingestor once reads one region after the other.
func oneByOne(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "quota.yaml")
	if err := os.WriteFile(file, []byte("ingest: {parallel: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "QUOTA_CONFIG=" + file
}

func TestSignalEndsBetweenPages(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			h, env := holding(t, 6) // the second page of the second region
			p := begin(t, append(env, oneByOne(t)), "ingestor", "once", "--region", "US,GB,DE",
				"-o", "json")
			<-h.arrived
			p.signal(t, sig)
			p.stderr.await(t, goodbye, p.ended)
			close(h.proceed)
			if code := p.code(); code != 1 {
				t.Errorf("exit code %d: %s", code, p.stderr.String())
			}
			got := sweepOf(t, p)
			if got.Outcome != "partial" || got.Units["default"] != 6 || h.Counts().Requests != 6 {
				t.Errorf("%+v after %d requests", got, h.Counts().Requests)
			}
			want := []string{"US complete 4 200", "GB partial 2 100", "DE skipped 0 0"}
			if text := got.text(); text != strings.Join(want, ", ") ||
				got.Regions[1].Error != "interrupted" {
				t.Errorf("%s, want %s: %+v", text, want, got)
			}

			again := begin(t, env, "ingestor", "once", "--region", "GB", "-o", "json")
			if code := again.code(); code != 0 {
				t.Fatalf("exit code %d: %s", code, again.stderr.String())
			}
			if got := sweepOf(t, again); got.text() != "GB complete 4 200" ||
				got.Units["default"] != 2 || h.Counts().Requests != 8 {
				t.Errorf("resumed: %+v after %d requests", got, h.Counts().Requests)
			}
		})
	}
}

// TestSignalEndsAllReaders: each reader finishes its page, and asks for no other.
func TestSignalEndsAllReaders(t *testing.T) {
	t.Parallel()
	h, env := holdingAll(t, 2, 4) // one of each region
	p := begin(t, env, "ingestor", "once", "--region", "US,GB,DE", "-o", "json")
	<-h.arrived
	p.signal(t, syscall.SIGTERM)
	p.stderr.await(t, goodbye, p.ended)
	close(h.proceed)
	if code := p.code(); code != 1 {
		t.Errorf("exit code %d: %s", code, p.stderr.String())
	}
	want, got := "US partial 2 100, GB partial 1 50, DE partial 1 50", sweepOf(t, p)
	if got.text() != want || got.Units["default"] != 4 || h.Counts().Requests != 4 {
		t.Errorf("%+v after %d requests", got, h.Counts().Requests)
	}
	for _, r := range got.Regions {
		if r.Error != "interrupted" {
			t.Errorf("%+v", r)
		}
	}

	again := begin(t, env, "ingestor", "once", "--region", "US,GB,DE", "-o", "json")
	if code := again.code(); code != 0 {
		t.Fatalf("exit code %d: %s", code, again.stderr.String())
	}
	want = "US complete 4 200, GB complete 4 200, DE complete 4 200"
	if got := sweepOf(t, again); got.text() != want || h.Counts().Requests != 12 {
		t.Errorf("resumed: %+v after %d requests", got, h.Counts().Requests)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	h, env := holding(t, 3)
	p := begin(t, env, "ingestor", "once", "--region", "US", "-o", "json", "--log-level", "debug")
	<-h.arrived
	p.stderr.await(t, "region=US page=2 ", p.ended) // is stored
	p.signal(t, syscall.SIGINT)
	p.stderr.await(t, goodbye, p.ended)
	// The first signal is still being dealt with for a moment, in which a second one says nothing
	// new.
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

	// What was charged stays charged (I3), and the pages are there to go on from.
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
	cmd := exec.CommandContext(t.Context(), "ingestor", "standin", "--listen", "127.0.0.1:0",
		"--units", "1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var line []byte
	for b := make([]byte, 1); len(line) == 0 ||
		line[len(line)-1] != '\n'; line = append(line, b[0]) {
		if _, err := io.ReadFull(out, b); err != nil {
			t.Fatal(err)
		}
	}
	url := strings.TrimSpace(string(line))
	env := []string{"YOUTUBE_ENDPOINT=" + url, "YOUTUBE_API_KEY=any", "QUOTA_STATE_DIR=" +
		filepath.Join(t.TempDir(), "state")}
	if sweep := begin(t, env, "ingestor", "once", "--region", "US"); sweep.code() != 75 {
		t.Errorf("%v: %s", sweep.ProcessState, sweep.stderr.String())
	}
	taken := begin(t, nil, "ingestor", "standin", "--listen",
		strings.Trim(strings.TrimPrefix(url, "http:"), "/"))
	if taken.code() != 1 || !strings.Contains(taken.stderr.String(),
		"hint: another program may listen there") {
		t.Errorf("a port that is taken: %v: %s", taken.ProcessState, taken.stderr.String())
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var counts youtubetest.Counts
	if err := json.NewDecoder(out).Decode(&counts); err != nil || counts.Units["default"] != 1 ||
		counts.Rejected != 1 {
		t.Errorf("last words: %+v, %v", counts, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestClosedOutput is the program in a pipe whose reader has gone: no panic, and what was fetched
// is kept.
func TestClosedOutput(t *testing.T) {
	h, env := holding(t, 0)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := exec.CommandContext(t.Context(), "ingestor", "once", "--region", "US")
	var stderr bytes.Buffer
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
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

// text is what the regions came to, in short.
func (s swept) text() string {
	var all []string
	for _, r := range s.Regions {
		all = append(all, strings.Join([]string{r.Region, r.Outcome, textOf(float64(r.Pages)),
			textOf(float64(r.Videos))}, " "))
	}
	return strings.Join(all, ", ")
}
