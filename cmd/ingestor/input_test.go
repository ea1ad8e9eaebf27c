package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(path, 0o600))
	return path
}

// codeSoon is the exit code of a process that must not hang.
func (p *process) codeSoon(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.ProcessState.ExitCode()
	case <-time.After(time.Minute):
		p.Process.Kill()
		<-p.ended
		t.Fatalf("it hangs: %s", p.stderr.String())
		return -1
	}
}

// TestSilentPipe: one signal ends a program that waits for its configuration.
func TestSilentPipe(t *testing.T) {
	for _, args := range [][]string{{"once"}, {"run"}, {"plan"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			path := pipe(t)
			p := begin(t, []string{"YOUTUBE_API_KEY=any"}, "ingestor",
				append(args, "--config", path)...)
			w := writer(t, path, p)
			defer w.Close()
			p.signal(t, syscall.SIGTERM)
			if code := p.codeSoon(t); code != 1 || strings.Count(p.stderr.String(), "\n") != 1 {
				t.Errorf("exit code %d: %s", code, p.stderr.String())
			}
		})
	}
}

// writer opens the pipe for writing once the process has it open.
func writer(t *testing.T, path string, p *process) *os.File {
	t.Helper()
	for {
		w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			return w
		}
		select {
		case <-p.ended:
			t.Fatalf("ended: %s", p.stderr.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestConfigFromCommand: a configuration may come from a command, and so may a price list.
func TestConfigFromCommand(t *testing.T) {
	costs, err := filepath.Abs("../../costs/youtube.yaml")
	must(t, err)
	script := `p() { exec ingestor plan -o json --config <(printf "$0" "$1"); }; p <(cat "$1")`
	text := `costs: %s\ningest: {pages: 3}\n`
	p := begin(t, nil, "bash", "-c", script, text, costs)
	if code := p.codeSoon(t); code != 0 || !strings.Contains(p.stdout.String(), `"units"`) {
		t.Errorf("exit code %d: %s%s", code, p.stdout.String(), p.stderr.String())
	}
}
