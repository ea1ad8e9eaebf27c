package sqlite

import (
	"context"
	"path/filepath"
	"time"
)

// Lock calls try, which is to begin a transaction that writes, until no other process holds the
// file's lock, at most for the busy timeout, and returns what it answered last. When ctx ends it
// returns ctx's error.
//
// Processes try one after the other, in the order in which they came: the next one waits for the
// lock while the others wait for their turn, as does one that has just given the lock back. Without
// that, one of twenty busy processes could be passed over until it gave up.
func (db *DB) Lock(ctx context.Context, try func() error) error {
	began := time.Now()
	done, err := turn(ctx, filepath.Dir(db.path), db.patience)
	if err != nil {
		return err
	}
	defer done()
	return wait(ctx, db.patience-time.Since(began), try)
}
