package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/cli/clitest"
	"quotabudget/internal/ledger/redistest"
)

// follower is a running quotactl log --follow.
type follower struct {
	*exec.Cmd
	lines  chan string // of standard output
	stderr *watched
	dir    string
	env    []string
}

// watched is the output of a process so far.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *watched) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(data)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func startFollower(t *testing.T, ledger string, args ...string) *follower {
	t.Helper()
	dir := t.TempDir()
	if ledger == "" {
		ledger = "sqlite:" + filepath.Join(dir, "ledger.db")
	}
	f := &follower{dir: dir, lines: make(chan string, 100), stderr: new(watched),
		env: append(os.Environ(), "QUOTA_LEDGER="+ledger, "HOME="+dir, "QUOTA_STATE_DIR="+dir)}
	f.spend(t, "--units", "1")
	f.Cmd = exec.Command("quotactl", append([]string{"log", "--follow"}, args...)...)
	f.Env, f.Dir, f.Stderr = f.env, dir, f.stderr
	out, err := f.StdoutPipe()
	must(t, err)
	must(t, f.Start())
	t.Cleanup(func() { f.Process.Kill() })
	go f.read(out)
	return f
}

func (f *follower) read(out io.Reader) {
	for scan := bufio.NewScanner(out); scan.Scan(); {
		f.lines <- scan.Text()
	}
	close(f.lines)
}

func (f *follower) spend(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("quotactl", append([]string{"spend"}, args...)...)
	cmd.Env, cmd.Dir = f.env, f.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// next returns the next line of standard output.
func (f *follower) next(t *testing.T) string {
	t.Helper()
	select {
	case line, ok := <-f.lines:
		if !ok {
			t.Fatalf("it has ended: %s", f.stderr)
		}
		return line
	case <-time.After(time.Minute):
		t.Fatalf("no line came: %s", f.stderr)
		return ""
	}
}

// ended waits for the process and returns its error.
func (f *follower) ended(t *testing.T) {
	t.Helper()
	for range f.lines {
	}
	if err := f.Wait(); err != nil {
		t.Errorf("%v: %s", err, f.stderr)
	}
}

// TestFollowEntries: entries are printed as they are charged, and an interrupt exits with 0.
func TestFollowEntries(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.Options{})
	for _, ledger := range []string{"", redis.URL()} {
		f := startFollower(t, ledger, "-o", "jsonl")
		var units []int64
		for n := range 4 {
			if n > 0 {
				f.spend(t, "--units", "2", "--label", "job=a")
			}
			var e struct{ Units int64 }
			if err := json.Unmarshal([]byte(f.next(t)), &e); err != nil {
				t.Error(err)
			}
			units = append(units, e.Units)
		}
		if units[0] != 1 || units[1]+units[2]+units[3] != 6 {
			t.Errorf("%d", units)
		}
		must(t, f.Process.Signal(os.Interrupt))
		f.ended(t)
		if f.stderr.String() != "" {
			t.Errorf("it said %s", f.stderr)
		}
	}
}

// TestFollowTable: for people, entries are printed below one heading.
func TestFollowTable(t *testing.T) {
	t.Parallel()
	f := startFollower(t, "", "--limit", "1")
	head, first := f.next(t), f.next(t)
	f.spend(t, "--method", "youtube.videos.list", "--label", "region=BR")
	second := f.next(t)
	if !strings.HasPrefix(head, "AT ") || !strings.Contains(first, "Z  default ") ||
		!strings.Contains(second, "  youtube.videos.list  BR  ") {
		t.Errorf("%s\n%s\n%s", head, first, second)
	}
	must(t, f.Process.Signal(syscall.SIGTERM))
	f.ended(t)
}

// TestFollowAwayLedger: the command reports an outage of Redis once, and resumes afterwards,
// printing each charge once.
func TestFollowAwayLedger(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.Options{AOF: true})
	f := startFollower(t, redis.URL(), "-o", "json")
	f.next(t)
	for n := range 2 {
		redis.Kill()
		f.says(t, "msg=\"waiting for the ledger\"", n+1)
		redis.Restart(t)
		f.spend(t, "--units", "7")
		if line := f.next(t); !strings.Contains(line, `"units":7`) {
			t.Error(line)
		}
		f.says(t, "msg=\"ledger is back\"", n+1)
	}
	must(t, f.Process.Signal(os.Interrupt))
	f.ended(t)
	said := f.stderr.String()
	if strings.Count(said, "\n") != 4 || clitest.Loud(said) != "" {
		t.Errorf("it said:\n%s", said)
	}
}

// says waits until standard error contains a text the given number of times.
func (f *follower) says(t *testing.T, text string, times int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		said := f.stderr.String()
		if strings.Count(said, text) >= times {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it never said %s, but:\n%s", text, said)
		}
	}
}
