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

	"quotabudget/internal/cli/clitest"
	"quotabudget/internal/ledger/redistest"
)

// TestTopOnATerminal runs the program on a terminal while Redis goes away and comes back.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.Options{AOF: true})
	watcher, screen := clitest.Terminal(t, 100)
	dir := t.TempDir()
	cmd := exec.Command("quotactl", "top", "--interval", "200ms")
	cmd.Env, cmd.Dir = append(os.Environ(), "QUOTA_LEDGER="+redis.URL(), "HOME="+dir,
		"QUOTA_STATE_DIR="+dir, "TERM=xterm", "NO_COLOR=1"), dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	screen.Close()
	seen := new(clitest.Output)
	go io.Copy(seen, watcher)
	from := 0 // behind what was shown before
	shows := func(text string) {
		t.Helper()
		seen.Await(t, nil, func(drawn string) bool {
			i := strings.Index(drawn[from:], text)
			from += max(i, 0)
			return i >= 0
		})
	}
	shows("search_list")
	redis.Kill()
	shows("waiting for the ledger since")
	redis.Restart(t)
	shows("quotactl top  2")
	moves := strings.NewReplacer("\x1b[K\r\n", "\n", "\x1b[J\x1b[H", "\n",
		"\x1b[?1049h\x1b[?25l\x1b[H", "")
	clitest.Fits(t, 100, moves.Replace(seen.String()))
	fmt.Fprint(watcher, "q")
	shows("\x1b[?1049l")
	must(t, cmd.Wait())
}
