package youtube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Retry sets how often and after which waits a call is sent again. Only transient and throttled
// calls are. Every attempt passes through the RoundTripper and is charged. The zero value sends
// everything once.
type Retry struct {
	Transient int // retries of transient failures
	// wait before the first retry, ± half; it doubles each time
	TransientWait time.Duration
	Throttled     int           // retries of a throttled call
	ThrottledWait time.Duration // at least this long, at most half as long again

	Tell func(err error, wait time.Duration) // called before each wait; may be nil
}

// DefaultRetry waits half a second, then one and two after transient failures, and twice a minute
// when throttled.
func DefaultRetry() Retry {
	return Retry{Transient: 3, TransientWait: 500 * time.Millisecond, Throttled: 2,
		ThrottledWait: time.Minute}
}

// do calls attempt until it succeeds, fails permanently or has used its retries. The end of ctx
// cuts a wait short.
func (r Retry) do(ctx context.Context, attempt func() error) error {
	const maxGrowth = 1 << 10 // the wait doubles at most ten times
	// A fifth more or less than this is from ThrottledWait to half as long again.
	middle := r.ThrottledWait + r.ThrottledWait/4
	waits := &waits{
		retry: r,
		transient: backoff.ExponentialBackOff{
			InitialInterval: r.TransientWait, RandomizationFactor: 0.5, Multiplier: 2,
			MaxInterval: r.TransientWait * maxGrowth,
		},
		throttled: backoff.ExponentialBackOff{
			InitialInterval: middle, RandomizationFactor: 0.2, Multiplier: 1, MaxInterval: middle,
		},
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := attempt()
		waits.failed, _ = KindOf(err)
		return struct{}{}, err
	}, backoff.WithBackOff(waits), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, wait time.Duration) {
			if r.Tell != nil {
				r.Tell(err, wait)
			}
		}))
	if err == nil || ctx.Err() == nil {
		return err
	}
	// The end of ctx is the reason, however the last attempt failed.
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// waits is a backoff.BackOff whose next wait depends on the last failure.
type waits struct {
	retry     Retry
	failed    Kind
	transient backoff.ExponentialBackOff
	throttled backoff.ExponentialBackOff
}

// Reset does nothing, because a waits serves one call.
func (w *waits) Reset() {}

// NextBackOff returns the wait before the next attempt, or backoff.Stop.
func (w *waits) NextBackOff() time.Duration {
	switch {
	case w.failed == Transient && w.retry.Transient > 0:
		w.retry.Transient--
		return w.transient.NextBackOff()
	case w.failed == Throttled && w.retry.Throttled > 0:
		w.retry.Throttled--
		return w.throttled.NextBackOff()
	}
	return backoff.Stop
}
