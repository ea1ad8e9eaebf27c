package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestTurns: a handle gets its turns while other handles of its process write all the time, and
// nothing is left behind.
func TestTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.db")
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 3 {
		db := openAs(t, path, notes())
		all.Go(func() {
			for ctx.Err() == nil {
				if err := db.Update(ctx, insert("x")); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	db := openAs(t, path, notes())
	for range 50 {
		if err := db.Update(t.Context(), insert("second")); err != nil {
			t.Error(err)
		}
	}
	stop()
	all.Wait()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestTurnDoesNotCome: a writer waits once for the turn of a process that never ends it, and gets
// it when it comes. Until then it takes no turn away from other processes.
func TestTurnDoesNotCome(t *testing.T) {
	db := mustOpen(t, filepath.Join(t.TempDir(), "n.db"))
	log := db.turn.log
	end := (&turn{log: log}).take(t.Context(), time.Hour)
	gone, leave := context.WithCancel(t.Context())
	leave()
	db.turn.take(gone, time.Hour)()
	db.patience = 10 * time.Hour // it does not wait again
	if err := db.Update(t.Context(), insert("x")); err != nil {
		t.Error(err)
	}
	end()
	for db.turn.late.Load() {
		runtime.Gosched()
	}
	(&turn{log: log}).take(t.Context(), time.Hour)()
	db.turn.take(t.Context(), time.Hour)()
	if db.turn.late.Load() {
		t.Error("a writer does not wait after the turn has come")
	}
}

// TestTurnWhileLocked: while a writer without a turn has the lock, a waiting writer lets others
// take the turn. Afterwards it writes in its turn again, not as soon as the lock is free.
func TestTurnWhileLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.db")
	db, intruder := mustOpen(t, path), mustOpen(t, path)
	tx, err := intruder.Write.BeginTx(t.Context(), nil)
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- db.Update(t.Context(), insert("x")) }()
	time.Sleep(50 * time.Millisecond) // the waiting writer finds the lock taken
	end := (&turn{log: db.turn.log}).take(t.Context(), time.Hour)
	must(t, tx.Rollback())
	select {
	case err := <-done:
		t.Errorf("the writer wrote while another writer had the turn: %v", err)
	case <-time.After(100 * time.Millisecond):
		end()
		must(t, <-done)
	}
}

// TestRemovesWhatWasLeft: what a process left that was killed while it made a file is removed, but
// not what one may still be making.
func TestRemovesWhatWasLeft(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, age time.Duration) {
		t.Helper()
		path := filepath.Join(dir, name)
		err := os.WriteFile(path, nil, 0o600)
		at := time.Now().Add(-age)
		must(t, errors.Join(err, os.Chtimes(path, at, at)))
	}
	write(".n.db.1.new", 2*creation)
	write(".n.db.1.new-wal", 2*creation)
	write(".n.db.2.new", 0)
	write(".other.db.1.new", 2*creation)
	mustOpen(t, filepath.Join(dir, "n.db"))
	for name, want := range map[string]bool{".n.db.1.new": false, ".n.db.1.new-wal": false,
		".n.db.2.new": true, ".other.db.1.new": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRename: where there are no hard links, a file gets its name, and replaces no other.
func TestRename(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "new"), filepath.Join(dir, "n.db")
	for i, want := range []error{nil, fs.ErrExist} {
		text := []byte{byte('a' + i)}
		must(t, os.WriteFile(from, text, 0o600))
		if err := rename(from, to); !errors.Is(err, want) {
			t.Errorf("rename %d: %v", i, err)
		}
		if got, err := os.ReadFile(to); string(got) != "a" {
			t.Errorf("%q, %v", got, err)
		}
	}
}
