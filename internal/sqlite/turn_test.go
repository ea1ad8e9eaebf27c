//go:build linux || darwin

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Writers that always have something to write take turns.
func TestTurns(t *testing.T) {
	const writers, each = 8, 40
	path := filepath.Join(t.TempDir(), "n.db")
	var mu sync.Mutex
	var order []int
	var all sync.WaitGroup
	for i := range writers {
		db := mustOpen(t, path, Options{})
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
	again := 0
	half := order[:len(order)/2] // all of them are there still
	for i := 1; i < len(half); i++ {
		if half[i] == half[i-1] {
			again++
		}
	}
	t.Logf("%d of %d: %v", again, len(half), half)
	if again > len(half)/3 {
		t.Errorf("%d of %d times the same writer went first again: %v", again, len(half), half)
	}
}

// Who waits for its turn can leave; who has waited for too long is told so. Neither keeps the
// others from theirs.
func TestTurnIsNotWaitedForInVain(t *testing.T) {
	dir := t.TempDir()
	first, err := turn(t.Context(), dir, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := turn(ctx, dir, time.Minute)
		left <- err
	}()
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves: %v", err)
	}
	if _, err := turn(t.Context(), dir, time.Millisecond); !errors.Is(err, ErrBusy) {
		t.Errorf("who has waited: %v", err)
	}
	first()
	next, err := turn(t.Context(), dir, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	next()
}
