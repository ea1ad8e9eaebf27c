package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/cli/clitest"
	"quotabudget/internal/ledger/redistest"
)

// follower is a running quotactl log --follow.
type follower struct {
	*shell
	cmd    *exec.Cmd
	lines  chan string // of standard output
	stderr *clitest.Output
}

func startFollower(t *testing.T, ledger string, args ...string) *follower {
	t.Helper()
	s := newShell(t, ledger, "")
	s.want(0, "", "spend", "--units", "1")
	f := &follower{s, s.command(append([]string{"log", "--follow"}, args...)...),
		make(chan string, 100), new(clitest.Output)}
	f.cmd.Stderr = f.stderr
	out, err := f.cmd.StdoutPipe()
	must(t, err)
	must(t, f.cmd.Start())
	t.Cleanup(func() { f.cmd.Process.Kill() })
	go func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			f.lines <- scan.Text()
		}
		close(f.lines)
	}()
	return f
}

// next returns the next line of standard output.
func (f *follower) next() string {
	f.Helper()
	select {
	case line, ok := <-f.lines:
		if ok {
			return line
		}
	case <-time.After(time.Minute):
	}
	f.Fatalf("no line: %s", f.stderr)
	return ""
}

// end sends a signal, on which the process must exit with 0.
func (f *follower) end(s os.Signal) {
	f.Helper()
	must(f, f.cmd.Process.Signal(s))
	for range f.lines {
	}
	if err := f.cmd.Wait(); err != nil {
		f.Errorf("%v: %s", err, f.stderr)
	}
}

// TestFollowEntries: entries are printed as they are charged, and an interrupt exits with 0.
func TestFollowEntries(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.Options{})
	for _, ledger := range []string{"sqlite:" + filepath.Join(t.TempDir(), "ledger.db"), redis.URL()} {
		f := startFollower(t, ledger, "-o", "jsonl")
		var units []int64
		for n := range 4 {
			if n > 0 {
				f.want(0, "", "spend", "--units", "2", "--label", "job=a")
			}
			var e struct{ Units int64 }
			if err := json.Unmarshal([]byte(f.next()), &e); err != nil {
				t.Error(err)
			}
			units = append(units, e.Units)
		}
		if units[0] != 1 || units[1]+units[2]+units[3] != 6 {
			t.Errorf("%d", units)
		}
		f.end(os.Interrupt)
		if f.stderr.String() != "" {
			t.Errorf("it said %s", f.stderr)
		}
	}
}

// TestFollowTable: for people, entries are printed below one heading.
func TestFollowTable(t *testing.T) {
	t.Parallel()
	f := startFollower(t, "sqlite:"+filepath.Join(t.TempDir(), "ledger.db"), "--limit", "1")
	head, first := f.next(), f.next()
	f.want(0, "", "spend", "--method", "youtube.videos.list", "--label", "region=BR")
	second := f.next()
	if !strings.HasPrefix(head, "AT ") || !strings.Contains(first, "Z  default ") ||
		!strings.Contains(second, "  youtube.videos.list  BR  ") {
		t.Errorf("%s\n%s\n%s", head, first, second)
	}
	f.end(syscall.SIGTERM)
}

// TestFollowAwayLedger: the command reports an outage of Redis once, and resumes afterwards,
// printing each charge once.
func TestFollowAwayLedger(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.Options{AOF: true})
	f := startFollower(t, redis.URL(), "-o", "json")
	f.next()
	for n := range 2 {
		redis.Kill()
		f.says("msg=\"waiting for the ledger\"", n+1)
		redis.Restart(t)
		f.want(0, "", "spend", "--units", "7")
		if line := f.next(); !strings.Contains(line, `"units":7`) {
			t.Error(line)
		}
		f.says("msg=\"ledger is back\"", n+1)
	}
	f.end(os.Interrupt)
	said := f.stderr.String()
	if strings.Count(said, "\n") != 4 || clitest.Loud(said) != "" {
		t.Errorf("it said:\n%s", said)
	}
}

// says waits until standard error contains a text the given number of times.
func (f *follower) says(text string, times int) {
	f.Helper()
	f.stderr.Await(f, nil, func(said string) bool { return strings.Count(said, text) >= times })
}
