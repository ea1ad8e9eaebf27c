//go:build linux

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"quotabudget/internal/cli/clitest"
	"quotabudget/internal/ledger/redistest"
)

// terminal is a terminal with a running command.
type terminal struct {
	*shell
	keys *os.File
	seen clitest.Output
	from int // start of the output that types has not matched yet
}

// newTerminal starts a command on a terminal.
func newTerminal(s *shell, columns int, c *exec.Cmd, env ...string) *terminal {
	watcher, screen := clitest.Terminal(s.T, columns)
	c.Env, c.Dir = append(s.env, env...), s.dir
	c.Stdin, c.Stdout, c.Stderr = screen, screen, screen
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(s, c.Start())
	screen.Close()
	term := &terminal{shell: s, keys: watcher}
	ended := make(chan struct{})
	go func() {
		io.Copy(&term.seen, watcher) // until the last end of the terminal is closed
		close(ended)
	}()
	s.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
		<-ended
	})
	return term
}

// types types keys, and waits until the terminal shows a text after that.
func (term *terminal) types(keys, want string) {
	term.Helper()
	_, err := term.keys.WriteString(keys)
	must(term, err)
	term.seen.Await(term, nil, func(text string) bool {
		at := strings.Index(text[term.from:], want)
		if at >= 0 {
			term.from += at + len(want)
		}
		return at >= 0
	})
}

// TestExecTerminal: terminal keys, job control, pipes and input work as without exec.
func TestExecTerminal(t *testing.T) {
	t.Parallel()
	term := newTerminal(newShell(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"), tenUnits),
		80, exec.Command("sh", "-i"), "PS1=prompt ", "ENV=", "TERM=dumb")
	const exec = "quotactl exec --units 1 -- "
	term.types("", "prompt ")
	// Ctrl-C reaches the command once
	term.types(exec+`sh -c 'trap "echo INT >> got" INT; echo rea''dy; `+
		`while ! test -e got; do sleep 0.05; done; sleep 0.3; exit 9'; echo co''de $?`+"\n", "ready")
	term.types("\x03", "code 9")
	if got := term.exists("got"); got != "INT" {
		t.Errorf("the command got %q", got)
	}
	term.types(exec+"sh -c 'echo rea''dy; exec sleep 300'\n", "ready")
	term.types("\x03", "prompt ")
	term.types("echo co''de $?\n", "code 130")
	// Ctrl-Z stops the job, fg continues it
	term.types(exec+"sh -c 'echo rea''dy; read line; echo got $line'\n", "ready")
	term.types("\x1a", "Stopped")
	term.types("fg\n", "quotactl")
	term.types("a line\n", "got a line")
	// a pipe with a closed reader
	term.types("\n"+exec+"yes li''ne | head -2; echo en''d\n", "line\r\nline\r\nend")
	term.types(exec+"tty\n", "/dev/pts/")
	term.types("", "prompt ")
	term.types(exec+"cat\n", "cat\r\n")
	term.types("typed\n", "typed\r\ntyped")
	term.types("\x04", "prompt ")
	term.want(0, `"held":0,`, "status", "-o", "json")
}

// TestTopOnATerminal runs the program on a terminal while Redis goes away and comes back.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.Options{AOF: true})
	s := newShell(t, redis.URL(), "")
	top := s.command("top", "--interval", "200ms")
	term := newTerminal(s, 100, top, "TERM=xterm", "NO_COLOR=1")
	term.types("", "search_list")
	redis.Kill()
	term.types("", "waiting for the ledger since")
	redis.Restart(t)
	term.types("", "quotactl top  2")
	moves := strings.NewReplacer("\x1b[K\r\n", "\n", "\x1b[J\x1b[H", "\n",
		"\x1b[?1049h\x1b[?25l\x1b[H", "")
	clitest.Fits(t, 100, moves.Replace(term.seen.String()))
	term.types("q", "\x1b[?1049l")
	must(t, top.Wait())
}
