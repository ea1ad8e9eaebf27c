package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestNothingIsAskedAfterTheLease: a run whose lease ended unnoticed makes no further attempt.
func TestNothingIsAskedAfterTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for since, want := range map[time.Duration]error{
			time.Minute - 1: nil, time.Minute: errLost, time.Hour: errLost,
		} {
			l := &lane{cfg: &Config{Lease: time.Minute}}
			leased := time.Now().Add(-since)
			l.leased.Store(&leased)
			made := false
			err := l.whileLeased(func(_ context.Context, attempt func() error) error {
				return attempt()
			})(t.Context(), func() error {
				made = true
				return nil
			})
			if err != want || made != (want == nil) {
				t.Errorf("%v after it was leased: %v, made %v", since, err, made)
			}
		}
	})
}

// TestPauseFollowsTheClock: after a machine slept or its clock was set, the pause ends at the
// tick's time although no timer fired.
func TestPauseFollowsTheClock(t *testing.T) {
	for _, c := range []struct{ jump, want time.Duration }{
		{0, 8 * time.Hour},
		{7 * time.Hour, time.Hour},
		{9 * time.Hour, 90 * time.Second}, // the next check after the jump
		{-time.Hour, 9 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			now := func() time.Time {
				if passed := time.Since(start); passed > 70*time.Second {
					return start.Add(passed + c.jump)
				}
				return time.Now()
			}
			if !pauseUntil(t.Context(), start.Add(8*time.Hour), now) ||
				time.Since(start) != c.want {
				t.Errorf("a jump of %v: waited %v, want %v", c.jump, time.Since(start), c.want)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if at := now().Add(time.Hour); pauseUntil(ctx, at, now) {
				t.Error("waited although the context had ended")
			}
		})
	}
}
