package sqlite

import (
	"context"
	"os"
	"time"
)

// Lock calls try, which begins a write transaction, until no other process holds the file's lock,
// for at most the busy timeout. It returns try's last error, or ctx's error when ctx ends. If
// there is no error, the caller must call end after the transaction. One caller at a time may use
// it: the one that has the connection.
func (db *DB) Lock(ctx context.Context, try func() error) (end func(), err error) {
	began := time.Now()
	turn, err := db.turn.take(ctx, db.patience/4)
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, db.patience-time.Since(began), try); err != nil {
		turn.Close()
		return nil, err
	}
	return func() { turn.Close() }, nil
}

// turn lets the writers of a file wait for each other in the kernel. SQLite only has them try
// again, which favors the process that wrote last. A turn is a lock of the whole write-ahead log,
// in which SQLite locks nothing; the log is there while the file is open for writing.
//
// Turns are for fairness alone. SQLite's lock keeps writers apart: a process without turns, or one
// that gave up waiting because the holder was stopped, uses that lock.
type turn struct {
	path  string        // of the log
	asked chan *os.File // receives the log once it is locked; nil if none was asked for
	late  bool          // the caller no longer waits for it
}

// take waits for the turn until patience is over. Closing the file ends the turn; it is nil where
// there is none.
func (t *turn) take(ctx context.Context, patience time.Duration) (*os.File, error) {
	if t.asked == nil {
		f, err := os.OpenFile(t.path, os.O_RDWR, 0)
		if err != nil {
			return nil, nil
		}
		if lockFile(f, false) == nil {
			return f, nil
		}
		t.asked, t.late = make(chan *os.File, 1), false
		go func(asked chan<- *os.File) {
			_ = lockFile(f, true) // where locks are not supported, the turn is as good without
			asked <- f
		}(t.asked)
	}
	if t.late {
		patience = 0
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case f := <-t.asked:
		t.asked = nil
		return f, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timeout.C:
		t.late = true
		return nil, nil
	}
}

// close ends a turn that still comes.
func (t *turn) close() {
	if asked := t.asked; asked != nil {
		go func() { (<-asked).Close() }()
	}
}
