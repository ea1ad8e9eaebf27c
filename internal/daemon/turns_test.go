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
		gone, leave := context.WithCancel(t.Context())
		impatient := all.join(time.Time{}, false) // the stalest lane, which does not wait
		go leave()
		if all.await(gone, impatient) {
			t.Error("got a turn without waiting")
		}
		all.give(new(turn))
		synctest.Wait()
		if order := <-got + <-got + <-got; order != "abc" || all.free != 1 {
			t.Errorf("order %s, %d free", order, all.free)
		}
	})
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
