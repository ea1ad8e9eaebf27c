//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// Unread reports whether standard output is a pipe without a reader. A program that waits would
// otherwise notice only at its next line.
func (c *Common) Unread() bool {
	file, ok := c.Stdout.(*os.File)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(file.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
}
