package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// lock locks f for a turn, until f is closed. Without wait it returns errTaken if it would have
// to.
func lock(f *os.File, wait bool) error {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), how); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errTaken
		default:
			return err
		}
	}
}

// letNext does nothing: here the last holder may get the next turn.
func letNext(*os.File) {}
