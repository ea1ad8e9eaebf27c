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
