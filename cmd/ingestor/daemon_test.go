package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

type daemonKey struct{}

// daemonCmd starts ingestor run and waits until it responds. Its output is in daemon.err once it
// has ended.
func daemonCmd(ts *testscript.TestScript, _ bool, _ []string) {
	cmd := exec.Command("ingestor", "run")
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "QUOTA_STATE_DIR", "YOUTUBE_API_KEY",
		"YOUTUBE_ENDPOINT", "TMPDIR", "GORACE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	p, err := start(cmd)
	ts.Check(err)
	ts.Defer(func() {
		p.Process.Kill()
		<-p.ended
	})
	for p.url() == "" {
		select {
		case <-p.ended:
			ts.Fatalf("the daemon has ended: %s", p.stderr.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	*ts.Value(daemonKey{}).(**process) = p
}

func daemonOf(ts *testscript.TestScript) *process { return *ts.Value(daemonKey{}).(**process) }

// fetchCmd prints a response of the daemon: fetch PATH.
func fetchCmd(ts *testscript.TestScript, _ bool, args []string) {
	text, err := daemonOf(ts).get(args[0])
	ts.Check(err)
	_, err = ts.Stdout().Write(text)
	ts.Check(err)
}

// awaitCmd repeats a request until the response matches, and prints it: await PATH PATTERN.
func awaitCmd(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile(args[1])
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		text, err := daemonOf(ts).get(args[0])
		if err == nil && pattern.Match(text) {
			_, err = ts.Stdout().Write(text)
			ts.Check(err)
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("no %s in %s: %v\n%s", args[1], bytes.TrimSpace(text), err,
				daemonOf(ts).stderr.String())
		}
	}
}

func (p *process) get(path string) ([]byte, error) {
	resp, err := http.Get(p.url() + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// signalCmd sends the daemon a signal: signal HUP, or signal TERM, after which it must end with
// code 0.
func signalCmd(ts *testscript.TestScript, _ bool, args []string) {
	d := daemonOf(ts)
	if args[0] == "HUP" {
		ts.Check(d.Process.Signal(syscall.SIGHUP))
		return
	}
	ts.Check(d.Process.Signal(syscall.SIGTERM))
	<-d.ended
	ts.Check(os.WriteFile(ts.MkAbs("daemon.err"), []byte(d.stderr.String()), 0o600))
	if code := d.ProcessState.ExitCode(); code != 0 {
		ts.Fatalf("exit code %d: %s", code, d.stderr.String())
	}
}
