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
	turnLength = 4
	turnTime   = 5 * time.Millisecond
)

// turnPause is how soon the next transaction must follow one for the turn to go on.
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
	ended time.Time     // when the last transaction was over
	quick bool          // the current one followed at once
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
	now := time.Now()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case t.place <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return ErrBusy
	}
	t.quick = now.Sub(t.ended) < turnPause
	if t.ours != nil || t.asked == nil && !t.ask() || t.late {
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
	t.asked = make(chan *os.File, 1)
	go t.wait(f, t.asked)
	return true
}

// wait waits until f has the lock, and gives it back if nobody waits for that any more.
func (t *turns) wait(f *os.File, asked chan *os.File) {
	_ = lock(f, true)
	asked <- f
	t.place <- struct{}{}
	select {
	case f := <-asked:
		t.start(f)
		t.give()
	default:
	}
	<-t.place
}

func (t *turns) start(f *os.File) {
	t.ours, t.left, t.until = f, turnLength, time.Now().Add(turnTime)
	t.asked, t.late, t.ahead = nil, false, true
}

// end ends a transaction, and the turn too unless the next transaction is likely to follow at once.
func (t *turns) end() {
	t.ended = time.Now()
	t.left--
	switch {
	case t.ours == nil:
	case t.quick && t.left > 0 && t.ended.Before(t.until):
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

// rest ends our turn if no transaction is under way.
func (t *turns) rest() {
	select {
	case t.place <- struct{}{}:
	default:
		return
	}
	if t.ours != nil {
		t.give()
	}
	<-t.place
}
