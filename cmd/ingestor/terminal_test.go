//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// terminal opens a terminal with somebody who looks at it: what is written to one end is read from the other.
func terminal(t *testing.T) (watcher, screen *os.File) {
	t.Helper()
	watcher, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { watcher.Close() })
	var number, unlocked int32
	for request, arg := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, watcher.Fd(), request, uintptr(unsafe.Pointer(arg))); e != 0 {
			t.Fatal(e)
		}
	}
	if screen, err = os.OpenFile("/dev/pts/"+textOf(float64(number)), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return watcher, screen
}

func TestProgressOnATerminal(t *testing.T) {
	_, env := holding(t, 0)
	for _, test := range []struct {
		name  string
		env   []string
		flags []string
		shows string
		hides string
	}{
		{"bars", []string{"TERM=xterm"}, nil, "GB               ... done! [2 pages in ", "level=INFO"},
		{"no colour", []string{"TERM=xterm", "NO_COLOR=1"}, nil, "... done! [2 pages in ", "[2m"},
		{"a ledger that is none", []string{"TERM=xterm", "QUOTA_LEDGER=sqlite:/dev/null/x"}, nil, "... fail! [0 pages in ", "goroutine"},
		{"a dumb one", []string{"TERM=dumb"}, nil, "level=INFO", "done!"},
		{"logs as JSON", []string{"TERM=xterm"}, []string{"--log-format", "json"}, `"msg":"region done"`, "done!"},
	} {
		t.Run(test.name, func(t *testing.T) {
			watcher, screen := terminal(t)
			cmd := exec.CommandContext(t.Context(), "ingestor", append([]string{"once", "--region", "US,GB", "--pages", "2"}, test.flags...)...)
			cmd.Env = append(append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...), test.env...)
			cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), screen, screen
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			screen.Close()
			var seen bytes.Buffer
			seen.ReadFrom(watcher) // ends in an error when the last end of the terminal is closed
			cmd.Wait()
			if text := seen.String(); !strings.Contains(text, test.shows) || strings.Contains(text, test.hides) {
				t.Errorf("%q must be there, %q must not:\n%q", test.shows, test.hides, text)
			}
		})
	}
}
