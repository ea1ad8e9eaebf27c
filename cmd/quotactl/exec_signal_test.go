package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
)

// TestExecSignals: the wrapper passes on its signals, and ends by a signal that ended the command.
func TestExecSignals(t *testing.T) {
	t.Parallel()
	// Under nohup and in the background these are ignored, and children would inherit that.
	heeded := make(chan os.Signal, 1)
	signal.Notify(heeded, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(heeded)
	s := newShell(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"), "")
	for name, sig := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP,
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "QUIT": syscall.SIGQUIT,
		"INT": syscall.SIGINT, "WINCH": syscall.SIGWINCH} {
		c := s.started("trap 'exit 9' " + name + "; echo > ready; while :; do sleep 0.02; done")
		must(t, c.Process.Signal(sig))
		c.Wait()
		if c.ProcessState.ExitCode() != 9 {
			t.Errorf("%s: %v %s", name, c.ProcessState, c.Stderr)
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		c := s.started("echo > ready; exec sleep 300")
		must(t, c.Process.Signal(sig))
		c.Wait()
		if status := c.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != sig {
			t.Errorf("%v: %v %s", sig, c.ProcessState, c.Stderr)
		}
	}
	// killed, too
	s.want(-1, "", "exec", "--units", "1", "--", "timeout", "-s", "KILL", "0.1", "sleep", "300")
	s.want(131, "", "exec", "--units", "1", "--", "sh", "-c", "kill -QUIT $$")
	s.want(0, `"used":12,`, "status", "-o", "json") // whatever ended the command
	s.want(0, `"held":0,`, "status", "-o", "json")
}

// started starts a line of shell under exec, and waits until it has written to the file ready.
func (s *shell) started(line string) *exec.Cmd {
	os.Remove(filepath.Join(s.dir, "ready"))
	c := s.command("exec", "--units", "1", "--", "sh", "-c", line)
	c.Stderr = &bytes.Buffer{}
	must(s, c.Start())
	s.exists("ready")
	return c
}

// TestExecWaiting: callers waiting for units get them in order of arrival; an interrupted caller
// leaves the queue.
func TestExecWaiting(t *testing.T) {
	onBoth(t, tenUnits, func(s *shell) {
		first := s.command("exec", "--units", "8", "--settle", "exit", "--", "sh", "-c",
			"echo > ready; while ! test -e go; do sleep 0.02; done; exit 1")
		must(s, first.Start())
		s.exists("ready")
		var line []*exec.Cmd
		for i, units := range []string{"10", "10", "10", "1"} { // the last one would fit
			c := s.command("exec", "--units", units, "--wait", "5m", "--settle", "exit", "--label",
				"job=j"+string(rune('0'+i)), "--", "sh", "-c", "echo $0 >> order; exit 1",
				string(rune('0'+i)))
			c.Stderr = &bytes.Buffer{}
			must(s, c.Start())
			line = append(line, c)
			s.until(`"note":"job j`+string(rune('0'+i)), "reservations", "--bucket",
				"waiting/default", "-o", "json")
		}
		s.want(75, "waiting before it: 4", "exec", "--units", "1", "--wait", "100ms", "--", "true")
		s.want(0, "", "exec", "--units", "1", "--settle", "report", "--", "sh", "-c",
			"echo units=0 >&3") // the command does not wait
		must(s, line[1].Process.Signal(syscall.SIGTERM))
		must(s, line[1].Process.Signal(syscall.SIGCONT))
		line[1].Wait()
		if status := line[1].ProcessState.Sys().(syscall.WaitStatus); status.Signal() != 15 {
			s.Errorf("%v %s", line[1].ProcessState, line[1].Stderr)
		}
		must(s, os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600))
		for _, c := range append(line, first) {
			c.Wait()
		}
		if order := s.exists("order"); order != "0\n2\n3" {
			s.Errorf("they ran in the order %q", order)
		}
		s.want(0, `"used":0,`, "status", "-o", "json")
		s.want(0, `"ok":true`, "ledger", "check", "-o", "json")
	})
}

// until runs quotactl until it prints a text.
func (s *shell) until(want string, args ...string) {
	s.Helper()
	out := ""
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if _, out = s.run(args...); strings.Contains(out, want) {
			return
		}
	}
	s.Fatalf("%q does not print %q: %s", args, want, out)
}

// TestExecLedgerGone: a command keeps running during a ledger outage. It is settled if the ledger
// returns in time; otherwise one line reports that it is not.
func TestExecLedgerGone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Args: []string{"--appendonly", "yes"}})
	s := newShell(t, server.URL(), "")
	const line = "echo > ready; while ! test -e go; do sleep 0.02; done; echo units=3 >&3"
	start := func(ttl string) *exec.Cmd {
		os.Remove(filepath.Join(s.dir, "ready"))
		c := s.command("exec", "--units", "5", "--ttl", ttl, "--settle", "report", "--", "sh", "-c",
			line)
		c.Stderr = &bytes.Buffer{}
		must(t, c.Start())
		s.exists("ready")
		return c
	}
	patient, brief := start("10m"), start("1s")
	server.Kill()
	must(t, os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600))
	brief.Wait()
	if text := brief.Stderr.(*bytes.Buffer).String(); brief.ProcessState.ExitCode() != 0 ||
		strings.Count(text, "\n") != 1 || !strings.Contains(text,
		"its usage waits in this host's journal") {
		t.Errorf("%v %s", brief.ProcessState, text)
	}
	server.Restart(t)
	patient.Wait()
	if text := patient.Stderr.(*bytes.Buffer).String(); !patient.ProcessState.Success() ||
		text != "" {
		t.Errorf("%v %s", patient.ProcessState, text)
	}
	s.want(0, "charged", "spend", "--units", "1") // and books what waits in the journal
	s.until(`"used":7,`, "status", "-o", "json")
	server.Kill()
	s.want(125, "ledger cannot be reached", "exec", "--units", "1", "--", "touch", "started")
	if _, err := os.Stat(filepath.Join(s.dir, "started")); err == nil {
		t.Error("it was started without the ledger")
	}
}
