//go:build linux || darwin

package sqlite

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// inside has a channel of one place for each folder, for who wants to write in this process: only
// one of them waits for the other processes.
var inside sync.Map

// turn waits for its turn among those that want to write to a file in dir, and returns what ends
// it. Between processes the turn is a lock on the folder, whose waiters the kernel serves in their
// order (flock(2)); where there are no such locks every process has a turn.
func turn(ctx context.Context, dir string, patience time.Duration) (end func(), err error) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	known, _ := inside.LoadOrStore(dir, make(chan struct{}, 1))
	place := known.(chan struct{})
	select {
	case place <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timeout.C:
		return nil, ErrBusy
	}
	f, err := os.Open(dir)
	if err != nil {
		return func() { <-place }, nil
	}
	end = func() {
		f.Close()
		<-place
	}
	if !errors.Is(lock(f, syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		return end, nil
	}
	locked := make(chan struct{})
	go func() {
		_ = lock(f, 0)
		close(locked)
	}()
	select {
	case <-locked:
		return end, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timeout.C:
		err = ErrBusy
	}
	go func() { // the place is taken until then: nobody here would be served sooner
		<-locked
		end()
	}()
	return nil, err
}

func lock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
