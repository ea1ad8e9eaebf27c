package limit_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/limit"
)

// charge is an allowed charge: its time by a clock that never goes back, and its units.
type charge struct{ at, units int64 }

// inside sums the charges in the window that ends at a moment.
func inside(all []charge, window, now int64) (sum int64) {
	for _, c := range all {
		if c.at > now-window && c.at <= now {
			sum += c.units
		}
	}
	return sum
}

// TestCounterError checks the error bound of the counter. The estimate is too low by at most
// the previous window's units times the part of it that has left, and too high by at most its
// units times the other part.
func TestCounterError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const window = 1_000_000 // µs
		p := &limit.Policy{Name: "p", Units: rapid.Int64Range(1, 60).Draw(t, "units"),
			Window: window * time.Microsecond, Algorithm: limit.Counter}
		m := limit.NewMemory()
		var all []charge
		now := int64(5_000_000)
		for range rapid.IntRange(1, 150).Draw(t, "calls") {
			now += rapid.Int64Range(0, window/4).Draw(t, "later")
			gone := now % window
			before := inside(all, window, now-gone-1)
			estimate := p.Units - take(m, p, now, 0).Remaining
			truth := inside(all, window, now)
			low := before * gone / window
			high := before*(window-gone)/window + 2 // rounded up, and to milliseconds
			if estimate < truth-low-1 || estimate > truth+high {
				t.Fatalf("at %d: estimated %d, truly %d, of which %d in the window before",
					now, estimate, truth, before)
			}
			cost := rapid.Int64Range(1, p.Units).Draw(t, "cost")
			if take(m, p, now, cost).Allowed {
				all = append(all, charge{now, cost})
			}
		}
	})
}
