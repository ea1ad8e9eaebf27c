//go:build linux

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// aProcess opens the file as another process would, with separate turns.
func aProcess(t *testing.T, path string, opts Options) *DB {
	t.Helper()
	db := mustOpen(t, path, opts)
	db.turns = newTurns(logOf(path))
	return db
}

// aLog returns a file to take turns on.
func aLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "n.db-wal")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustBegin(t *testing.T, turns *turns) {
	t.Helper()
	if err := turns.begin(t.Context(), time.Hour); err != nil {
		t.Error(err)
	}
	turns.letNext()
}

// isNext waits until a process is next, and waits for the turn.
func isNext(t *testing.T, log string) {
	t.Helper()
	f, err := os.OpenFile(log, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for !taken(f, nextByte) {
		runtime.Gosched()
	}
}

// TestTurns: processes that write all the time have equal shares, and leave nothing behind.
func TestTurns(t *testing.T) {
	const writers, each = 8, 40
	path := filepath.Join(t.TempDir(), "n.db")
	var mu sync.Mutex
	var order []int
	var all sync.WaitGroup
	var opened []*DB
	for range writers {
		opened = append(opened, aProcess(t, path, Options{}))
	}
	for i, db := range opened {
		all.Go(func() {
			for range each {
				err := db.Update(t.Context(), func(*sql.Tx) error {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
					time.Sleep(time.Millisecond) // a slow disk
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	half := order[:len(order)/2] // all of them still run
	for i, db := range opened {
		n := 0
		for _, who := range half {
			if who == i {
				n++
			}
		}
		if n < each/4 {
			t.Errorf("writer %d came %d times in %v", i, n, half)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestTurnEnds: a turn is kept for a few transactions that follow each other closely. Then
// waiting processes have theirs.
func TestTurnEnds(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		log := aLog(t)
		one, two := newTurns(log), newTurns(log)
		var mu sync.Mutex
		var order []string
		came := func(who string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, who)
		}
		var waits sync.WaitGroup
		for n := range 2 * turnLength {
			if one.skip = 0; !keeps {
				one.skip = 1
			}
			mustBegin(t, one)
			one.until = time.Now().Add(time.Hour)
			came("one")
			if n == 0 {
				waits.Go(func() {
					mustBegin(t, two)
					came("two")
					two.end()
				})
				isNext(t, log)
			}
			one.end()
		}
		waits.Wait()
		want := 1
		if keeps {
			want = turnLength
		}
		if at := slices.Index(order, "two"); at != want {
			t.Errorf("keeps %t: %v", keeps, order)
		}
	}
}

// TestTurnIsNotJumped: a new process is not served before waiting ones, even if the first of
// those is not awake yet.
func TestTurnIsNotJumped(t *testing.T) {
	log := aLog(t)
	var files [2]*os.File
	for i := range files {
		f, err := os.OpenFile(log, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	queueUp(files[0])
	if err := lock(files[1], false); !errors.Is(err, errTaken) {
		t.Errorf("got %v, want %v", err, errTaken)
	}
	letNext(files[0])
	if err := lock(files[1], false); err != nil {
		t.Error(err)
	}
}

// TestTurnIsNotKeptInVain: a turn ends if no transaction follows. The next turns are not kept at
// all, until keeping one has helped.
func TestTurnIsNotKeptInVain(t *testing.T) {
	log := aLog(t)
	one, two := newTurns(log), newTurns(log)
	for _, want := range []int{1, 0, 3, 2, 1, 0, 7} {
		mustBegin(t, one)
		one.until = time.Now().Add(time.Hour)
		one.end()
		mustBegin(t, two)
		two.give()
		two.end()
		one.place <- struct{}{}
		if one.skip != want {
			t.Errorf("%d turns are not kept, want %d", one.skip, want)
		}
		<-one.place
	}
	for helped := false; !helped; one.end() {
		mustBegin(t, one)
		one.skip = 0
		one.end()
		mustBegin(t, one) // soon enough, eventually
		helped = one.vain == 0
	}
}

// TestTurnIsNotWaitedForInVain: a waiting caller can leave. The next one waits on, and no process
// is kept from its turn.
func TestTurnIsNotWaitedForInVain(t *testing.T) {
	log := aLog(t)
	one, two, three := newTurns(log), newTurns(log), newTurns(log)
	mustBegin(t, one)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- two.begin(ctx, time.Hour) }()
	isNext(t, log)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves: %v", err)
	}
	if err := two.begin(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves at once: %v", err)
	}
	go func() { left <- two.begin(t.Context(), time.Hour) }()
	one.end()
	if err := <-left; err != nil || two.ours == nil {
		t.Errorf("who waits on: %v, ours %v", err, two.ours)
	}
	two.letNext()
	ctx, cancel = context.WithCancel(t.Context())
	go func() { left <- one.begin(ctx, time.Hour) }()
	isNext(t, log)
	cancel()
	<-left
	two.end() // no caller of one waits any more
	mustBegin(t, three)
	three.end()
}

// TestTurnDoesNotCome: a caller goes on without its turn if that takes long, as when the holder
// was stopped. The next caller does not wait for it again, and when the turn comes it is
// released.
func TestTurnDoesNotCome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.db")
	db := aProcess(t, path, Options{BusyTimeout: 400 * time.Millisecond})
	stopped, other := newTurns(logOf(path)), newTurns(logOf(path))
	mustBegin(t, stopped)
	if err := db.Update(t.Context(), insert("without a turn")); err != nil {
		t.Fatal(err)
	}
	db.patience = time.Hour
	if err := db.Update(t.Context(), insert("without a turn")); err != nil {
		t.Fatal(err)
	}
	stopped.end()
	mustBegin(t, other)
	other.end()
	if err := db.Update(t.Context(), insert("with a turn")); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db.Read); n != 4 {
		t.Errorf("%d notes, want 4", n)
	}
}

// TestWithoutTurns: SQLite's lock suffices if some writers do not use turns, such as those of an
// earlier version; nothing is lost.
func TestWithoutTurns(t *testing.T) {
	const writers, each = 6, 20
	path := filepath.Join(t.TempDir(), "n.db")
	var all sync.WaitGroup
	for i := range writers {
		db := aProcess(t, path, Options{})
		if i%2 == 0 {
			db.turns = newTurns(filepath.Join(path, "nothing"))
		}
		all.Go(func() {
			for range each {
				if err := db.Update(t.Context(), insert("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := count(t, mustOpen(t, path, Options{}).Read); n != 1+writers*each {
		t.Errorf("%d notes, want %d", n, 1+writers*each)
	}
}

// TestTurnsNest: each file has separate turns, so a process may write to one file within a
// transaction of another while other processes do the same.
func TestTurnsNest(t *testing.T) {
	const processes, each = 3, 10
	dir := t.TempDir()
	var all sync.WaitGroup
	opts := Options{BusyTimeout: time.Minute}
	for range processes {
		outer := aProcess(t, filepath.Join(dir, "a.db"), opts)
		inner := aProcess(t, filepath.Join(dir, "b.db"), opts)
		all.Go(func() {
			for range each {
				err := outer.Update(t.Context(), func(tx *sql.Tx) error {
					if err := insert("inside")(tx); err != nil {
						return err
					}
					return inner.Update(t.Context(), insert("inside"))
				})
				if err == nil {
					err = inner.Update(t.Context(), insert("alone"))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for name, want := range map[string]int{
		"a.db": 1 + processes*each, "b.db": 1 + 2*processes*each,
	} {
		if n := count(t, mustOpen(t, filepath.Join(dir, name), Options{}).Read); n != want {
			t.Errorf("%s: %d notes, want %d", name, n, want)
		}
	}
}
