package sqlite

import (
	"context"
	"os"
	"sync"
	"time"
)

// Lock calls try, which begins a write transaction, until no other process holds the file's lock,
// for at most the busy timeout. It returns try's last error, or ctx's error when ctx ends. If
// there is no error, the caller must call end after the transaction. One caller at a time may use
// it: the one that has the connection.
func (db *DB) Lock(ctx context.Context, try func() error) (end func(), err error) {
	began := time.Now()
	end, err = db.turn.take(ctx, db.patience/4)
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, db.patience-time.Since(began), try); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// turn lets the writers of a file wait for each other in the kernel. SQLite only has them try
// again, which favors the process that wrote last. A turn is a lock of the whole write-ahead log,
// in which SQLite locks nothing; the log is there while the file is open for writing.
//
// Turns are for fairness alone. SQLite's lock keeps writers apart: a process without turns, or one
// that gave up waiting because the holder was stopped, uses that lock.
type turn struct {
	path  string        // of the log
	place chan struct{} // held by one handle of this process

	mu      sync.Mutex
	asked   chan *os.File // receives the log once it is locked; nil if none was asked for
	waiting bool          // a caller waits for it
	late    bool          // a caller no longer waited for it, and it has not come yet
}

// turns are those of this process, by the path of the log. Its handles on one file wait for each
// other without the kernel.
var turns sync.Map

func turnOf(log string) *turn {
	t, _ := turns.LoadOrStore(log, newTurn(log))
	return t.(*turn)
}

func newTurn(log string) *turn { return &turn{path: log, place: make(chan struct{}, 1)} }

// take waits for the turn until patience is over, and then goes on without. The caller must call
// end.
func (t *turn) take(ctx context.Context, patience time.Duration) (end func(), err error) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case t.place <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timeout.C:
		return func() {}, nil
	}
	f, err := t.locked(ctx, timeout.C)
	if err != nil {
		<-t.place
		return nil, err
	}
	return func() { f.Close(); <-t.place }, nil
}

// locked returns the log once it is locked. Closing it ends the turn; it is nil where there is none.
func (t *turn) locked(ctx context.Context, timeout <-chan time.Time) (*os.File, error) {
	asked, f := t.ask()
	if asked == nil {
		return f, nil
	}
	select {
	case f := <-asked:
		return f, nil
	case <-ctx.Done():
	case <-timeout:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case f = <-asked: // it came at the same moment
	default:
		t.waiting, t.late = false, true
	}
	if ctx.Err() != nil {
		f.Close()
		return nil, ctx.Err()
	}
	return f, nil
}

// ask returns the turn, or the channel that receives it. It returns neither if turns are not
// supported, or if the turn that the last caller gave up has not come yet.
func (t *turn) ask() (asked chan *os.File, f *os.File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked == nil {
		f, err := os.OpenFile(t.path, os.O_RDWR, 0)
		if err != nil {
			return nil, nil
		}
		if lockFile(f, false) == nil {
			return nil, f
		}
		t.asked = make(chan *os.File, 1)
		go t.wait(f, t.asked)
	}
	if t.late {
		return nil, nil
	}
	t.waiting = true
	return t.asked, nil
}

// wait waits for the lock, and ends a turn that no caller waits for any more: others do.
func (t *turn) wait(f *os.File, asked chan<- *os.File) {
	_ = lockFile(f, true) // where locks are not supported, the turn is as good without
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting {
		asked <- f
	} else {
		f.Close()
	}
	t.asked, t.waiting, t.late = nil, false, false
}
