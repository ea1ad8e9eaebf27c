//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/cli/clitest"
	"quotabudget/internal/ledger/redistest"
)

// TestTopOnATerminal: the program on a terminal: keys, a resize, Redis away and back, and its end.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.Options{AOF: true})
	watcher, screen := clitest.Terminal(t, 100)
	dir := t.TempDir()
	env := append(os.Environ(), "QUOTA_LEDGER="+redis.URL(), "HOME="+dir, "QUOTA_STATE_DIR="+dir,
		"TERM=xterm", "NO_COLOR=1")
	cmd := exec.Command("quotactl", "top", "--interval", "200ms")
	cmd.Env, cmd.Dir = env, dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	screen.Close()
	seen := new(watched)
	go io.Copy(seen, watcher)
	shows := func(text string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !strings.Contains(seen.String(), text); {
			if time.Sleep(20 * time.Millisecond); time.Now().After(deadline) {
				t.Fatalf("no %q in %q", text, seen)
			}
		}
	}
	shows("search_list")
	fmt.Fprint(watcher, "s")
	shows("suspend bucket default of default? y/n")
	fmt.Fprint(watcher, "y")
	shows("default is suspended until")
	redis.Kill()
	shows("waiting for the ledger since")
	redis.Restart(t)
	fmt.Fprint(watcher, "e")
	shows("press any key to go back")
	fmt.Fprint(watcher, "xq")
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%q", err, seen)
	}
	status := exec.Command("quotactl", "status")
	status.Env, status.Dir = env, dir
	out, err := status.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "default is suspended") {
		t.Errorf("%v: %s", err, out)
	}
}
