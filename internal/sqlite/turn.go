package sqlite

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// Bounds of a turn: a number of transactions, and a time after which it ends with the current
// one.
const (
	turnLength = 12
	turnTime   = 6 * time.Millisecond
)

// turnPause is how long a turn is kept for the next transaction.
const turnPause = 200 * time.Microsecond

// errTaken is returned while it is another process's turn.
var errTaken = errors.New("it is another process's turn")

// turns lets this process take turns with other writers of a file. It holds a turn until the
// transaction is over, so that the next process begins at once. It keeps the turn for a few
// transactions if they follow each other closely, because SQLite drops its cache of a file
// whenever another process writes. Waiting processes are served in order of arrival.
//
// Turns are only for speed. SQLite's lock keeps writers apart. A process without turns, or one
// that gave up waiting because the holder was stopped, uses that lock alone.
//
// The locks are on the write-ahead log, far beyond its end. The log exists while the file is open
// for writing, is removed when the last process closes the file, and SQLite itself locks nothing
// in it. (Closing a second descriptor of the file, or of the log's index, would drop SQLite's
// locks.)
type turns struct {
	path  string        // path of the log
	place chan struct{} // held by the writer; guards the fields below
	ours  *os.File      // holds the lock during our turn
	left  int           // transactions left in the turn
	until time.Time     // no transaction begins in the turn after this
	asked chan *os.File // receives the requested lock
	late  bool          // gave up waiting for the requested lock
	// turns to give up early next time, because keeping the last one was useless
	vain  int
	skip  int         // turns still to give up early
	ahead bool        // no other process has moved to the front yet
	idle  *time.Timer // ends the turn if no transaction follows
}

// ours holds this process's turns by the path of the log, shared by its handles on a file.
var ours sync.Map

func turnsOf(file string) *turns {
	log := logOf(file)
	known, found := ours.Load(log)
	if !found {
		known, _ = ours.LoadOrStore(log, newTurns(log))
	}
	return known.(*turns)
}

func newTurns(log string) *turns {
	t := &turns{path: log, place: make(chan struct{}, 1)}
	t.idle = time.AfterFunc(turnPause, t.rest)
	return t
}

// Lock calls try, which begins a write transaction, until no other process holds the file's lock,
// for at most the busy timeout. It returns try's last error, or ctx's error when ctx ends. If
// there is no error, the caller must call end after the transaction.
//
// Processes that write all the time take turns of a few transactions.
func (db *DB) Lock(ctx context.Context, try func() error) (end func(), err error) {
	began := time.Now()
	if err := db.turns.begin(ctx, db.patience); err != nil {
		return nil, err
	}
	err = wait(ctx, db.patience-time.Since(began), try)
	db.turns.letNext()
	if err != nil {
		db.turns.end()
		return nil, err
	}
	return db.turns.end, nil
}

// begin waits for our turn. It returns nil without a turn if turns are not supported, or after a
// long wait.
func (t *turns) begin(ctx context.Context, patience time.Duration) error {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case t.place <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return ErrBusy
	}
	if t.ours != nil {
		t.vain = 0
		return nil
	}
	if t.asked == nil && !t.ask() || t.late {
		return nil
	}
	late := time.NewTimer(patience / 4)
	defer late.Stop()
	select {
	case f := <-t.asked:
		t.start(f)
	case <-late.C:
		t.late = true
	case <-ctx.Done(): // the goroutine keeps waiting for the next caller
		<-t.place
		return ctx.Err()
	}
	return nil
}

// ask requests the lock, and reports whether to wait for it.
func (t *turns) ask() bool {
	f, err := os.OpenFile(t.path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	switch err = lock(f, false); {
	case err == nil:
		t.start(f)
		return false
	case !errors.Is(err, errTaken): // such locks are not supported here
		f.Close()
		return false
	}
	t.asked = make(chan *os.File)
	go t.wait(f, t.asked)
	return true
}

// wait waits until f has the lock, and releases it if no caller waits for it any more.
func (t *turns) wait(f *os.File, asked chan<- *os.File) {
	_ = lock(f, true)
	select {
	case asked <- f:
	case t.place <- struct{}{}:
		t.start(f)
		t.give()
		<-t.place
	}
}

func (t *turns) start(f *os.File) {
	t.ours, t.left, t.until = f, turnLength, time.Now().Add(turnTime)
	t.asked, t.late, t.ahead = nil, false, true
}

// end ends a transaction. It keeps the turn for the next one, unless that was useless recently.
func (t *turns) end() {
	t.left--
	switch {
	case t.ours == nil:
	case t.skip > 0:
		t.skip--
		t.give()
	case t.left > 0 && time.Now().Before(t.until):
		t.idle.Reset(turnPause)
	default:
		t.give()
	}
	<-t.place
}

// letNext lets the next process move to the front. By now the previous holder is in the queue
// again.
func (t *turns) letNext() {
	if t.ours != nil && t.ahead {
		letNext(t.ours)
		t.ahead = false
	}
}

func (t *turns) give() {
	t.ours.Close()
	t.ours = nil
}

// rest ends our turn if no transaction has followed.
func (t *turns) rest() {
	select {
	case t.place <- struct{}{}:
	default:
		return
	}
	if t.ours != nil {
		t.vain = min(2*t.vain+1, 63)
		t.skip = t.vain
		t.give()
	}
	<-t.place
}
