package youtube

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"

	"quotabudget/internal/youtube/fault"
)

// Retry says how often and after how long a call is sent again. Every attempt passes through the
// RoundTripper, so each is charged. Only transient and throttled calls are sent again. The zero
// value sends everything once.
type Retry struct {
	Transient int // how often a transient failure is sent again
	// before the first of them, ± half; each further one waits twice as long
	TransientWait time.Duration
	Throttled     int           // how often a throttled call is sent again
	ThrottledWait time.Duration // at least so long, at most half as long again

	Tell func(err error, wait time.Duration) // told before each wait; nil for nobody
}

// DefaultRetry waits half a second, one and two after transient failures, and a minute, twice, when
// throttled.
func DefaultRetry() Retry {
	return Retry{Transient: 3, TransientWait: 500 * time.Millisecond, Throttled: 2,
		ThrottledWait: time.Minute}
}

// do calls attempt until it succeeds, fails for good or has used its retries up; ctx ends the
// waiting.
func (r Retry) do(ctx context.Context, attempt func() error) error {
	waits := r.waits()
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := attempt()
		waits.failed, _ = fault.KindOf(err)
		return struct{}{}, err
	}, backoff.WithBackOff(waits), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, wait time.Duration) {
			if r.Tell != nil {
				r.Tell(err, wait)
			}
		}))
	if err != nil && ctx.Err() != nil {
		return ended(ctx) // whatever failed last
	}
	return err
}

// waits is a backoff.BackOff whose next wait depends on what failed last.
type waits struct {
	retry     Retry
	failed    fault.Kind
	transient backoff.ExponentialBackOff
	throttled backoff.ExponentialBackOff
}

func (r Retry) waits() *waits {
	const maxDoublings = 1 << 10
	middle := r.ThrottledWait + r.ThrottledWait/4 // of ThrottledWait and half as much again
	return &waits{
		retry: r,
		transient: backoff.ExponentialBackOff{
			InitialInterval: r.TransientWait, RandomizationFactor: 0.5, Multiplier: 2,
			MaxInterval: r.TransientWait * maxDoublings,
		},
		throttled: backoff.ExponentialBackOff{
			InitialInterval: middle, RandomizationFactor: 0.2, Multiplier: 1, MaxInterval: middle,
		},
	}
}

// Reset does nothing: waits serve one call.
func (w *waits) Reset() {}

// NextBackOff is the wait before the next attempt, or backoff.Stop.
func (w *waits) NextBackOff() time.Duration {
	switch {
	case w.failed == fault.Transient && w.retry.Transient > 0:
		w.retry.Transient--
		return w.transient.NextBackOff()
	case w.failed == fault.Throttled && w.retry.Throttled > 0:
		w.retry.Throttled--
		return w.throttled.NextBackOff()
	}
	return backoff.Stop
}
