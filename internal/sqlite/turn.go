package sqlite

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// Lock calls try, which begins a write transaction, until no other process holds the file's lock,
// for at most the busy timeout. It returns try's last error, or ctx's error when ctx ends. If
// there is no error, the caller must call end after the transaction. One caller at a time may use
// it: the one that has the connection.
func (db *DB) Lock(ctx context.Context, try func() error) (end func(), err error) {
	err = wait(ctx, db.patience, func() error {
		end = db.turn.take(ctx, db.patience/4)
		err := try()
		if err != nil {
			end() // a writer without a turn has the lock: the next attempt takes a new turn
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return end, nil
}

// turn lets the writers of a file wait for each other in the kernel. SQLite only has them try
// again, which favors the process that wrote last. A turn is an flock on the write-ahead log, which
// SQLite does not lock; the log exists while the file is open for writing.
//
// Turns are for fairness alone. SQLite's lock keeps writers apart: a writer that gave up waiting
// because the holder was stopped uses that lock.
type turn struct {
	log  string      // path
	late atomic.Bool // a caller stopped waiting for a lock that is still to come
}

// take waits for the turn until patience is over or ctx ends, and then continues without it. The
// caller must call end.
func (t *turn) take(ctx context.Context, patience time.Duration) (end func()) {
	without := func() {}
	if t.late.Load() {
		return without
	}
	log, err := os.OpenFile(t.log, os.O_RDWR, 0)
	if err != nil {
		return without
	}
	locked := make(chan struct{})
	go func() {
		lockFile(log)
		close(locked)
	}()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-locked:
		return func() { log.Close() }
	case <-ctx.Done():
	case <-timeout.C:
	}
	t.late.Store(true)
	go func() { // once the lock comes, other processes can have it
		<-locked
		log.Close()
		t.late.Store(false)
	}()
	return without
}

// lockFile waits until it has locked f; closing f unlocks it. If the file system has no locks, it
// returns without one.
func lockFile(f *os.File) {
	for errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX), syscall.EINTR) {
	}
}
