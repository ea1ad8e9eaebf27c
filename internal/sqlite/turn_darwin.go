package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// lock locks f for a turn, until f is closed; errTaken if it would have to wait and is not to.
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

// letNext has nothing to do: who has just had a turn may get the next one here.
func letNext(*os.File) {}
