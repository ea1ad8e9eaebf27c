package sqlite

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstWait = 50 * time.Microsecond // the first pause between attempts; it doubles each time
	maxWait   = 2 * time.Millisecond
)

// wait calls try until no other process holds the lock, for at most patience. It returns try's
// last error, or ctx's error when ctx ends. SQLite's own waiting grows to steps of 100 ms, which
// hardly ever hit a busy lock while it is free; these steps are short and uneven.
func wait(ctx context.Context, patience time.Duration, try func() error) error {
	deadline := time.Now().Add(patience)
	for pause := firstWait; ; pause = min(2*pause, maxWait) {
		err := try()
		switch {
		case err == nil || !isKind(err, ErrBusy):
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
