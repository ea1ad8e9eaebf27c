package sqlite

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstWait   = 50 * time.Microsecond // for another process's transaction; then twice as long
	longestWait = 2 * time.Millisecond
)

// wait calls try until it does not answer that another process holds the lock, at most for as long
// as patience lasts, and returns what it answered last. SQLite's own waiting grows to steps of 100
// ms, in which a lock that many processes take again and again is hardly ever caught free; these
// steps are short and uneven. When ctx ends it returns ctx's error.
func wait(ctx context.Context, patience time.Duration, try func() error) error {
	deadline := time.Now().Add(patience)
	for pause := firstWait; ; pause = min(2*pause, longestWait) {
		err := try()
		switch {
		case err == nil || !isBusy(err):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}
