//go:build interop

package interop

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// process is a program that has printed its address.
type process struct {
	cmd     *exec.Cmd
	address string
	killed  bool
}

// launch starts a program that prints its address, and ends it with the test.
func launch(t *testing.T, vars []string, program string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program, args...)}
	p.cmd.Env = append(os.Environ(), vars...)
	var stderr strings.Builder
	p.cmd.Stderr = &stderr
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	in := bufio.NewReader(out)
	address, err := in.ReadString('\n')
	p.address = strings.TrimSpace(address)
	t.Cleanup(func() {
		p.cmd.Process.Signal(syscall.SIGTERM)
		for err := error(nil); err == nil; { // what it prints at its end
			_, err = in.ReadString('\n')
		}
		if err := p.cmd.Wait(); err != nil && !p.killed || t.Failed() {
			t.Errorf("%s: %v\n%s", program, err, stderr.String())
		}
	})
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, stderr.String())
	}
	return p
}

// kill ends it as kill -9 does.
func (p *process) kill() {
	p.killed = true
	p.cmd.Process.Kill()
	p.cmd.Process.Wait()
}
