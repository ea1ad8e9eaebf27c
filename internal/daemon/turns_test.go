package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestTurnsGoToTheStalest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all turns
		got := make(chan string, 4)
		now := time.Now()
		for name, age := range map[string]time.Duration{"b": 2 * time.Hour, "a": 3 * time.Hour,
			"c": time.Hour} {
			mine := all.join(now.Add(-age), false)
			go func() {
				all.await(t.Context(), mine)
				got <- name
				all.give(mine)
			}()
		}
		cancelled, leave := context.WithCancel(t.Context())
		impatient := all.join(time.Time{}, false) // the stalest lane, which does not wait
		go leave()
		if all.await(cancelled, impatient) {
			t.Error("got a turn without waiting")
		}
		all.give(new(turn))
		synctest.Wait()
		if order := <-got + <-got + <-got; order != "abc" || all.free != 1 {
			t.Errorf("order %s, %d free", order, all.free)
		}
	})
}

// TestTurnsCatchUp: of the runs that catch up, one at a time has a turn.
func TestTurnsCatchUp(t *testing.T) {
	all := turns{free: 3}
	first, second := all.join(time.Time{}, true), all.join(time.Time{}, true)
	other := all.join(time.Now(), false)
	expect := func(want ...bool) {
		t.Helper()
		for i, mine := range []*turn{first, second, other} {
			granted := false
			select {
			case <-mine.granted:
				granted = true
			default:
			}
			if granted != want[i] {
				t.Errorf("turn %d was granted: %v", i, granted)
			}
		}
	}
	expect(true, false, true)
	all.give(other)
	expect(true, false, true)
	all.give(first)
	if expect(true, true, true); all.free != 2 {
		t.Errorf("%d free", all.free)
	}
}

// TestTurnsShut: while turns are shut, a probe goes to the most recently served region. After
// that the others go as usual.
func TestTurnsShut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := turns{free: 1}
		all.shut()
		all.shut() // by another outage
		got := make(chan string, 4)
		now := time.Now()
		for name, age := range map[string]time.Duration{"b": 2, "a": 3, "c": 1} {
			mine := all.join(now.Add(-age*time.Hour), false)
			go func() {
				all.await(t.Context(), mine)
				got <- name
				all.give(mine)
			}()
		}
		expect := func(want string) {
			t.Helper()
			synctest.Wait()
			order := ""
			for len(got) > 0 {
				order += <-got
			}
			if order != want {
				t.Errorf("order %q, want %q", order, want)
			}
		}
		expect("")
		all.probe()
		expect("c")
		all.open()
		expect("")
		all.open()
		expect("ab")
	})
}

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
