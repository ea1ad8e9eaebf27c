package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"quotabudget/internal/youtube"
)

// breaker keeps lanes from calling an upstream that is down: several attempts in a row, by at least
// two runs, got no answer (a server error, a network failure, a timeout). Any answer, even a
// refusal, resets the count. One run is not enough, because a single region may fail.
//
//	10:00:00  US fails four times: its tick has failed, as it would alone
//	10:05:00  GB fails once: the upstream is down, and GB's tick waits
//	10:05:30  GB tries once more and fails; so does one lane after 1, 2, 4, 8, 10, 10 … minutes
//	10:42:30  DE gets an answer: each lane runs its last tick, the stalest region first
type breaker struct {
	upstream *dependency

	mu       sync.Mutex
	failures int    // in a row
	run      string // run of the first failure
	several  bool   // more than one run failed
}

// downAfter is the number of failures in a row after which the upstream counts as down.
const downAfter = 4

// errDown reports that the upstream is down: the call failed or was not made.
var errDown = errors.New("the upstream is down")

// guard returns the youtube.Client's Guard for one run.
func (b *breaker) guard(run string) func(context.Context, func() error) error {
	return func(ctx context.Context, attempt func() error) error {
		if !b.upstream.take() {
			return errDown
		}
		err := attempt()
		kind, upstream := youtube.KindOf(err)
		switch {
		case err == nil, upstream && kind != youtube.Transient:
			b.mu.Lock()
			b.failures, b.several = 0, false
			b.mu.Unlock()
			b.upstream.works()
		case ctx.Err() != nil, !upstream: // the gate refused, or ctx ended before the answer
			b.upstream.untake()
		case b.down(run):
			b.upstream.failed(err)
			// hides the fault, so that the client does not retry
			return fmt.Errorf("%w: %v", errDown, err)
		}
		return err
	}
}

// down counts a failure, and reports whether the upstream is down.
func (b *breaker) down(run string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures++; b.failures == 1 {
		b.run = run
	}
	b.several = b.several || b.run != run
	return b.several && b.failures >= downAfter
}
