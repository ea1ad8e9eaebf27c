// Package redistest runs real Redis servers for tests: on loopback, on a free port, with a clock
// that the test can set.
package redistest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "embed"
)

// Options describe the server to start. The zero value is a server that stores nothing on disk and
// has the real time.
type Options struct {
	Clock bool     // the test sets the server's clock (needs a C compiler)
	AOF   bool     // keep an append-only file, synced at each write, for Restart
	Node  bool     // a node of a cluster; it serves no slot yet
	TLS   []string // Authority.TLS: serve only TLS
	Args  []string // further options of the server

	Sentinel string // configuration of a sentinel to run instead of a server
}

// Server is a running redis-server. It ends with the test.
type Server struct {
	Addr string // 127.0.0.1:port

	opts  Options
	dir   string
	port  int
	clock *os.File
	cmd   *exec.Cmd
	ended chan struct{}
	log   bytes.Buffer
}

// Start runs a server until the test ends. It fails the test if redis-server is missing.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	s := &Server{opts: opts, dir: t.TempDir()}
	if opts.Clock {
		clock, err := os.Create(filepath.Join(s.dir, "clock"))
		check(t, err)
		s.clock = clock
		t.Cleanup(func() { clock.Close() })
		s.SetNow(t, time.Time{})
	}
	s.Restart(t)
	t.Cleanup(s.Kill)
	return s
}

// check fails the test with an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// URL returns the URL of the ledger on the server.
func (s *Server) URL() string { return "redis://" + s.Addr + "/0" }

// PID returns the ID of the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// SetNow stops the server's clock at now; a zero time lets it follow the real one.
func (s *Server) SetNow(t testing.TB, now time.Time) {
	t.Helper()
	var us [8]byte
	if !now.IsZero() {
		binary.NativeEndian.PutUint64(us[:], uint64(now.UnixMicro()))
	}
	_, err := s.clock.WriteAt(us[:], 0)
	check(t, err)
}

// Kill ends the server as a crash would.
func (s *Server) Kill() {
	s.cmd.Process.Kill()
	<-s.ended
}

// Begin restarts a killed server without waiting until it has loaded its data.
func (s *Server) Begin(t testing.TB) {
	t.Helper()
	check(t, s.start(t, s.listens))
}

// Restart restarts a killed server on the same port and directory, and waits until it answers. It
// tries again, because another process may take the port meanwhile.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	for try := 1; ; try++ {
		if s.port == 0 || try > 1 {
			s.port = freePort(s.opts.Node)
		}
		s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
		ready := s.answers
		if s.opts.TLS != nil {
			ready = s.listens
		}
		err := s.start(t, ready)
		if err == nil {
			return
		}
		if try == 3 {
			t.Fatalf("redis-server: %v\n%s", err, s.log.String())
		}
	}
}

func (s *Server) start(t testing.TB, ready func() bool) error {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("redis-server is not installed: make test installs it")
	}
	args := []string{"--save", ""}
	if s.opts.Sentinel != "" {
		config := filepath.Join(s.dir, "sentinel.conf")
		check(t, os.WriteFile(config, []byte(s.opts.Sentinel), 0o600))
		args = []string{config, "--sentinel"}
	}
	args = append(args, "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir)
	if s.opts.TLS != nil {
		args = append(args, "--port", "0", "--tls-port", strconv.Itoa(s.port))
		args = append(args, s.opts.TLS...)
	}
	if s.opts.Node {
		args = append(args, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")
	}
	if s.opts.AOF {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	s.cmd = exec.Command(path, append(args, s.opts.Args...)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.opts.Clock {
		library, err := buildClock()
		check(t, err)
		s.cmd.Env = append(os.Environ(), "LD_PRELOAD="+library, "QUOTA_TEST_CLOCK="+s.clock.Name())
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.ended = ended
	go func() { s.cmd.Wait(); close(ended) }()
	return s.await(ready)
}

// await polls until the server is ready.
func (s *Server) await(ready func() bool) error {
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		select {
		case <-s.ended:
			return fmt.Errorf("ended at once")
		case <-time.After(10 * time.Millisecond):
		}
		if ready() {
			return nil
		}
	}
	s.Kill()
	return fmt.Errorf("no answer in 30 s")
}

// answers reports whether the server serves: it has loaded its data, or replies that it requires a
// password.
func (s *Server) answers() bool {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	conn.Write([]byte("PING\r\n"))
	reply := make([]byte, 64)
	n, _ := conn.Read(reply)
	return slices.Contains([]string{"+PONG", "-NOAU"}, string(reply[:min(n, 5)]))
}

// listens reports whether the server accepts connections.
func (s *Server) listens() bool {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// freePort finds a port on which no process listens. It is below the ports that the system assigns
// to clients and listeners, so no other process takes the port of a killed server. The nodes of a
// cluster connect to each other on the port 10,000 above their own.
func freePort(node bool) int {
	for {
		port := 12000 + rand.IntN(10000)
		if free(port) && (!node || free(port+10000)) {
			return port
		}
	}
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err == nil {
		l.Close()
	}
	return err == nil
}

//go:embed testdata/clock.c
var clockSource []byte

// buildClock compiles the clock once for each test binary.
var buildClock = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "quota-clock-")
	if err != nil {
		return "", err
	}
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		return "", err
	}
	cc := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", library, source)
	out, err := cc.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cc: %w: %s (make test installs a C compiler)", err, out)
	}
	return library, nil
})
