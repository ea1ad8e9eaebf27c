package sqlite

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// A turn ends after so many transactions, or with the one that is under way after so long.
const (
	turnLength = 12
	turnTime   = 6 * time.Millisecond
)

// turnPause is how long a turn is kept for the next transaction.
const turnPause = 200 * time.Microsecond

// errTaken says that it is another process's turn.
var errTaken = errors.New("it is another process's turn")

// turns is how this process takes turns with the others that write to a file. A turn is held
// until the transaction is over, so that the next process begins at once, and for a few
// transactions if they follow each other at once: what SQLite remembers of a file is lost whenever
// another process writes to it. Those who wait are served in the order in which they came.
//
// A turn is a matter of speed. What keeps writers apart is SQLite's lock: whoever knows no turns,
// or has waited for a turn in vain because its holder was stopped, waits for that lock alone.
//
// The locks are on the write-ahead log, far behind its end: it is there while the file is open for
// writing, goes when the last process closes the file, and SQLite itself locks nothing in it. (A
// second descriptor of the file itself, or of its index of the log, would drop SQLite's locks when
// it is closed.)
type turns struct {
	path  string        // of the log
	place chan struct{} // of who writes, or is about to; what follows is theirs
	ours  *os.File      // has the lock, while it is our turn
	left  int           // transactions that the turn may have
	until time.Time     // when it has the last of them, at the latest
	asked chan *os.File // receives the lock that was asked for
	late  bool          // the lock that was asked for is not waited for any more
	vain  int           // so many turns were not to be kept when one was kept in vain
	skip  int           // so many of them are left
	ahead bool          // nobody else can come next yet
	idle  *time.Timer   // ends the turn when no transaction follows
}

// ours are the turns of this process by the path of the log: its handles on a file share them.
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

// Lock calls try, which is to begin a transaction that writes, until no other process holds the
// file's lock, at most for the busy timeout, and returns what it answered last. When ctx ends it
// returns ctx's error. Without an error, end is to be called when the transaction is over.
//
// Processes that have always something to write take turns of a few transactions.
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

// begin waits for our turn. It returns nil without one where there are none, and where it has
// waited for long.
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
	case <-ctx.Done(): // who comes next waits on
		<-t.place
		return ctx.Err()
	}
	return nil
}

// ask asks for the lock, and reports whether it is to be waited for.
func (t *turns) ask() bool {
	f, err := os.OpenFile(t.path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	switch err = lock(f, false); {
	case err == nil:
		t.start(f)
		return false
	case !errors.Is(err, errTaken): // there are no such locks here
		f.Close()
		return false
	}
	t.asked = make(chan *os.File)
	go t.wait(f, t.asked)
	return true
}

// wait waits until f has the lock, and gives it back if nobody waits for that any more.
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

// end ends a transaction. It keeps the turn for the next one, unless that did not come the last
// times.
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

// letNext lets the next one in the queue come forward. By now who had the turn before us is in the
// queue again.
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

// rest ends our turn when no transaction has followed.
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
