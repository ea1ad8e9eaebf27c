//go:build linux

package clitest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal opens a terminal of the given width. What is written to screen can be read from
// watcher. The caller closes screen once a program has it.
func Terminal(t *testing.T, columns int) (watcher, screen *os.File) {
	t.Helper()
	watcher, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { watcher.Close() })
	fd := int(watcher.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	size := &unix.Winsize{Row: 50, Col: uint16(columns)}
	if err := errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size)); err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return watcher, screen
}

// Seen runs a program with a terminal as its standard output, and returns what it wrote there and
// how it ended. The terminal is its standard error, too, if that was set to os.Stdout.
func Seen(t *testing.T, columns int, cmd *exec.Cmd) (string, error) {
	t.Helper()
	watcher, screen := Terminal(t, columns)
	cmd.Stdout = screen
	if cmd.Stderr == os.Stdout {
		cmd.Stderr = screen
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	screen.Close()
	var output bytes.Buffer
	output.ReadFrom(watcher) // fails when the last handle of the terminal is closed
	return output.String(), cmd.Wait()
}
