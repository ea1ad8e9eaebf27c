package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Stagger spreads the regions of a job over its interval. With the zero value all begin at the
// tick.
type Stagger struct {
	Step time.Duration // between one listed region and the next; negative means 0
	Auto bool          // derive each region's offset from its name, and ignore Step
}

// Offsets returns each region's delay after the schedule's tick. With Step the i-th region runs i
// steps later. With Auto each gets a moment within the schedule's Interval, in whole seconds, that
// depends only on the region and the spec. So the delay stays the same after a restart, and when
// other regions come or go.
func (g Stagger) Offsets(regions []string, s *Schedule) []time.Duration {
	offsets := make([]time.Duration, len(regions))
	for i, region := range regions {
		if g.Auto {
			offsets[i] = derived(region, s.Interval())
		} else {
			offsets[i] = time.Duration(i) * max(g.Step, 0)
		}
	}
	return offsets
}

// derived returns a duration of at least 0 and less than the interval.
func derived(region string, interval time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(region))
	seconds := binary.BigEndian.Uint64(sum[:8]) % uint64(interval/time.Second)
	return time.Duration(seconds) * time.Second
}
