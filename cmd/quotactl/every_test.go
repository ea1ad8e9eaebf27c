package main

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
)

// everyCommand are the commands that ask the ledger, each with arguments that do something.
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

// TestEveryCommand_LedgerAway: each command says that the ledger is away and what to do, and ends
// with 69. For doctor it is a finding.
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

// TestEveryCommand_Killed: a command that is killed while it waits for the ledger leaves one that
// is in order, and has taken one unit at most.
func TestEveryCommand_Killed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	direct := newShell(t, server.URL(), "")
	front, met := between(t, server.Addr)
	s := newShell(t, "redis://"+front+"/0", "")
	must(t, syscall.Kill(server.PID(), syscall.SIGSTOP))
	for _, command := range everyCommand {
		c := s.command(strings.Fields(command)...)
		must(t, c.Start())
		select {
		case <-met:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: it does not ask the ledger", command)
		}
		must(t, c.Process.Kill())
		c.Wait()
	}
	must(t, syscall.Kill(server.PID(), syscall.SIGCONT))
	direct.want(0, `"ok":true`, "ledger", "check", "-o", "json")
	direct.want(0, "", "spend", "--units", "9000")
}

// TestEveryCommand_Signals: while the ledger says nothing, a signal ends a command, which fails;
// where the first one does not, the second does.
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
		conn, err := mute.Accept() // and nothing is ever said to it
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

// between forwards connections to a server, and tells of each.
func between(t *testing.T, to string) (address string, met <-chan struct{}) {
	front, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { front.Close() })
	connected := make(chan struct{}, 100)
	go func() {
		for {
			client, err := front.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to) // its kernel answers, though it is stopped
			if err != nil {
				client.Close()
				continue
			}
			connected <- struct{}{}
			go forward(client, server)
			go forward(server, client)
		}
	}()
	return front.Addr().String(), connected
}

func forward(from, to net.Conn) {
	defer to.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
