//go:build linux

package clitest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"
)

// Terminal opens a terminal of so many columns with somebody who looks at it: what is written to
// one end is read from the other. Close screen once a program has it.
func Terminal(t *testing.T, columns int) (watcher, screen *os.File) {
	t.Helper()
	watcher, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { watcher.Close() })
	var number, unlocked int32
	size := [4]uint16{50, uint16(columns)} // rows, columns
	for _, ask := range []struct {
		request uintptr
		arg     unsafe.Pointer
	}{
		{syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked)},
		{syscall.TIOCGPTN, unsafe.Pointer(&number)},
		{syscall.TIOCSWINSZ, unsafe.Pointer(&size)},
	} {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, watcher.Fd(), ask.request,
			uintptr(ask.arg)); e != 0 {
			t.Fatal(e)
		}
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return watcher, screen
}

// Seen runs a program whose standard output is a terminal of so many columns, and returns what it
// wrote there and how it ended.
func Seen(t *testing.T, columns int, cmd *exec.Cmd) (string, error) {
	t.Helper()
	watcher, screen := Terminal(t, columns)
	cmd.Stdout = screen
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	screen.Close()
	var seen bytes.Buffer
	seen.ReadFrom(watcher) // ends in an error when the last end of the terminal is closed
	return seen.String(), cmd.Wait()
}
