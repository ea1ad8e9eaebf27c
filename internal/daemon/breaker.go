package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"quotabudget/internal/youtube/fault"
)

// breaker keeps the lanes from asking an upstream that is down: they share what each of them
// learns. It is down after several attempts in a row, of two runs at least, that had no answer (a
// server error, a network failure, a time-out); any answer ends that, a refusal too. One run is not
// enough: a region may fail by itself.
//
//	10:00:00  US fails four times: its tick has failed, as it would alone
//	10:05:00  GB fails once: the upstream is down, and GB's tick waits
//	10:05:30  GB asks once more, in vain; so does one lane after 1, 2, 4, 8, 10, 10 … minutes
//	10:42:30  DE is answered: the last tick of each lane runs, that of the stalest region first
type breaker struct {
	upstream *dependency

	mu       sync.Mutex
	failures int    // in a row
	run      string // of the first of them
	several  bool   // runs failed
}

// enough is how many failures in a row mean that the upstream is down.
const enough = 4

// errDown says that nothing was asked, because the upstream is down, or that it was asked in vain.
var errDown = errors.New("the upstream is down")

// guard is the youtube.Client's for one run.
func (b *breaker) guard(run string) func(context.Context, func() error) error {
	return func(ctx context.Context, attempt func() error) error {
		if !b.upstream.take() {
			return errDown
		}
		err := attempt()
		kind, upstream := fault.KindOf(err)
		switch {
		case err == nil, upstream && kind != fault.Transient:
			b.answered()
		case ctx.Err() != nil, !upstream: // it was not asked, or not waited for
			b.upstream.untake()
		case b.down(run):
			b.upstream.failed(err)
			return fmt.Errorf("%w: %v", errDown, err) // which is not retried
		}
		return err
	}
}

func (b *breaker) answered() {
	b.mu.Lock()
	b.failures, b.several = 0, false
	b.mu.Unlock()
	b.upstream.works()
}

// down counts a failure, and reports whether the upstream is down with it.
func (b *breaker) down(run string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures++; b.failures == 1 {
		b.run = run
	}
	b.several = b.several || b.run != run
	return b.several && b.failures >= enough
}
