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
			mine := all.join(now.Add(-age))
			go func() {
				all.await(t.Context(), mine)
				got <- name
				all.give()
			}()
		}
		gone, leave := context.WithCancel(t.Context())
		impatient := all.join(time.Time{}) // the stalest of all, and it does not wait
		go leave()
		if all.await(gone, impatient) {
			t.Error("a turn that nobody gave")
		}
		all.give()
		synctest.Wait()
		if order := <-got + <-got + <-got; order != "abc" || all.free != 1 {
			t.Errorf("order %s, %d free", order, all.free)
		}
	})
}
