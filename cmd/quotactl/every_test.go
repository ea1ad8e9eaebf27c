package main

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
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
