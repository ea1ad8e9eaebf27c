//go:build unix

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks f until it is closed. Without wait, it returns an error instead of waiting.
func lockFile(f *os.File, wait bool) error {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
