//go:build linux || darwin

package sqlite

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// turn waits for this process's turn among those that want to write to a file in dir, and returns
// what ends it. The turn is a lock on the folder, whose waiters the kernel serves in their order
// (flock(2)); where there are no such locks everybody has a turn.
func turn(ctx context.Context, dir string, patience time.Duration) (done func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {}, nil
	}
	end := func() { f.Close() }
	lock := func(how int) error {
		for {
			err := syscall.Flock(int(f.Fd()), how)
			if !errors.Is(err, syscall.EINTR) {
				return err
			}
		}
	}
	if !errors.Is(lock(syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		return end, nil
	}
	locked := make(chan struct{})
	go func() {
		_ = lock(syscall.LOCK_EX)
		close(locked)
	}()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-locked:
		return end, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timeout.C:
		err = ErrBusy
	}
	go func() {
		<-locked
		end()
	}()
	return nil, err
}
