package quota

import (
	"context"
	"time"
)

// Pause waits for d. It returns false if ctx ends first.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// Patience bounds how long a ledger that is away is asked again.
type Patience struct {
	Total   time.Duration // 0 asks once
	Attempt time.Duration // for one answer
}

// Retry asks the ledger, and again while it is away, with growing waits.
func (p Patience) Retry(ctx context.Context, ask func(context.Context) error) error {
	end := time.Now().Add(p.Total)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		attempt, done := context.WithTimeout(ctx, p.Attempt)
		err := ask(attempt)
		done()
		left := time.Until(end)
		if !IsAway(err) || left <= 0 || !Pause(ctx, min(wait, left)) {
			return err
		}
	}
}
