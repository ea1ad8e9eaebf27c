package main

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
)

// everyCommand lists the commands that use the ledger, with arguments.
var everyCommand = []string{
	"adjust --bucket default --units 1 --reason test",
	"commit default.06fmjq2kx4a9bc",
	"doctor",
	"draw default.06fmjq2kx4a9bc 1",
	"exec --units 1 -- true",
	"explain",
	"forecast",
	"ledger check",
	"log",
	"log --by job",
	"log --follow",
	"report observe",
	"release default.06fmjq2kx4a9bc",
	"reservations",
	"reserve 1 --ttl 1h",
	"resume --bucket default",
	"settle default.06fmjq2kx4a9bc default=1",
	"spend --units 1",
	"status",
	"suspend --bucket default",
	"top",
}

// TestEveryCommand_LedgerAway: each command reports that the ledger is unreachable and what to do,
// and exits with 69. For doctor it is a finding.
func TestEveryCommand_LedgerAway(t *testing.T) {
	t.Parallel()
	s := newShell(t, "redis://127.0.0.1:1/0", "")
	for _, command := range everyCommand {
		code, words := 69, "hint: "
		switch command {
		case "doctor":
			code, words = 2, "do:"
		case "exec --units 1 -- true":
			code = 125
		}
		s.want(code, words, strings.Fields(command)...)
	}
}

// TestEveryCommand_Signals: while the ledger does not respond, a first or second signal ends a
// command, which fails.
func TestEveryCommand_Signals(t *testing.T) {
	t.Parallel()
	mute, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	defer mute.Close()
	s := newShell(t, "redis://"+mute.Addr().String()+"/0", "")
	for _, command := range everyCommand {
		c := s.command(strings.Fields(command)...)
		must(t, c.Start())
		must(t, mute.SetDeadline(time.Now().Add(30*time.Second)))
		conn, err := mute.Accept() // and never write to it
		must(t, err)
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		for again := true; again; {
			c.Process.Signal(syscall.SIGTERM)
			select {
			case <-ended:
				again = false
			case <-time.After(20 * time.Millisecond):
			}
		}
		conn.Close()
		status := c.ProcessState.Sys().(syscall.WaitStatus)
		if !status.Signaled() && status.ExitStatus() == 69 { // it waited for the ledger
			t.Errorf("%s: %v", command, c.ProcessState)
		}
	}
}

// Without the ledger, a person sees the units that may still be spent and the entries waiting to be
// recorded. The next call with the ledger records these.
func TestWithoutLedger(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{AOF: true})
	s := newShell(t, server.URL(), "credentials: [{name: key1, when_unreachable: "+
		"{open: [youtube.videos.list], at_most: 3}}]\n")
	spend := []string{"spend", "--method", "youtube.videos.list"}
	s.want(0, "charged 1 unit", spend...)
	server.Kill()
	s.want(127, "no-such-program", "exec", "--method", "youtube.videos.list", "--count", "3", "--",
		"no-such-program") // takes nothing
	s.want(0, "left=map[default:1]", "exec", "--method", "youtube.videos.list", "--count", "2", "--",
		"true")
	s.want(125, "at_most is spent", "exec", "--method", "youtube.videos.list",
		"--count", "2", "--", "true")
	s.want(0, "charged 1 unit of default without the ledger, which cannot be reached",
		spend...)
	s.want(69, "at_most is spent", spend...)
	s.want(69, "key1 may spend 0 of 3 units of default without the ledger; "+
		"2 calls wait in the journal", "status")
	s.want(69, "ledger cannot be reached", "spend", "--method", "youtube.search.list")
	server.Restart(t)
	s.want(0, "charged 1 unit", spend...)
	s.want(0, "journal  default      3        2", "log", "--by", "source")
	s.want(0, `"used":5,`, "status", "-o", "json")
}
