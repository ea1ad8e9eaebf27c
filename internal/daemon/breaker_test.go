package daemon_test

import (
	"strings"
	"testing"
	"time"
)

// TestBreaker: the upstream counts as down after four failures in a row from two runs, and not
// before.
func TestBreaker(t *testing.T) {
	t.Parallel()
	for fault, down := range map[string]int{"503*3": 0, "503*4": 1, "503:US": 0} {
		t.Run(fault, func(t *testing.T) {
			atNoon(t, func(w *env) {
				p := w.open(lanes(t, "0 * * * *", "UTC", "US GB", 0)...)
				w.faults(fault)
				p.start().stopAfter(5 * time.Minute)
				if n := w.logged("the upstream does not answer"); n != down {
					t.Errorf("down %d times, want %d: %s", n, down, strings.Join(w.log, ""))
				}
			})
		})
	}
}

// TestBreaker_Answered: an answer resets the failures and the run they belong to.
func TestBreaker_Answered(t *testing.T) {
	atNoon(t, func(w *env) {
		all := append(lanes(t, "*/5 * * * *", "UTC", "US", 0),
			lanes(t, "0 * * * *", "UTC", "GB", 0)...)
		p := w.open(all...)
		w.faults("503*2") // once for each lane
		p.start()
		time.Sleep(time.Minute)
		if len(w.runs("US GB")) != 2 || w.logged("tick done") != 2 {
			t.Fatalf("log: %s", strings.Join(w.log, ""))
		}
		w.faults("503:US")
		p.stopAfter(8 * time.Minute) // one tick
		if w.logged("tick failed") != 1 || w.logged("the upstream does not answer") != 0 {
			w.complain()
		}
	})
}
