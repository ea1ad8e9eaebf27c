package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Stagger says how the regions of a job are spread over its interval. The zero value lets all begin
// at the tick.
type Stagger struct {
	Step time.Duration // between a region and the next one listed; negative is none
	Auto bool          // derive each region's offset from its name; Step is not looked at
}

// Offsets returns how long after the schedule's tick each region runs, at the region's place. With
// a step the i-th runs i steps later. Auto gives each a moment of its own within the schedule's
// Interval, in full seconds, which depends on the region and the spec alone: it stays when the
// process restarts, and when other regions come or go.
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

// derived returns a time from 0 to less than the interval.
func derived(region string, interval time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(region))
	seconds := binary.BigEndian.Uint64(sum[:8]) % uint64(interval/time.Second)
	return time.Duration(seconds) * time.Second
}
