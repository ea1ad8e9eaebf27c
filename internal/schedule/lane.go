package schedule

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"time"
)

// LaneID identifies a lane.
type LaneID struct {
	Job, Region string // Region is "" for a job without regions
}

// Name returns the lane's name in messages and claims: "trending/BR", or "backfill" for a job
// without regions.
func (l LaneID) Name() string {
	if l.Region == "" {
		return l.Job
	}
	return l.Job + "/" + l.Region
}

// Title returns the lane's short name, for use where the job is clear: "BR", or "backfill".
func (l LaneID) Title() string { return cmp.Or(l.Region, l.Job) }

// Lane is the series of ticks of a job or of one of its regions: the schedule's ticks, each
// delayed by the offset.
type Lane struct {
	LaneID
	Schedule *Schedule
	Offset   time.Duration
}

// Tick is one moment at which a lane runs.
type Tick struct {
	LaneID
	Scheduled time.Time // time in the schedule
	At        time.Time // when the lane runs: Scheduled plus the offset
}

// ID returns the tick's ID, which is the same in every process and does not depend on the offset:
// "asia/JP/2026-03-08T10:00:00Z", or "backfill/2026-03-08T10:00:00Z".
func (t Tick) ID() string { return t.Name() + "/" + t.Scheduled.UTC().Format(time.RFC3339) }

// Next returns the first tick that runs after t.
func (l Lane) Next(t time.Time) Tick { return l.Tick(l.Schedule.Next(t.Add(-l.Offset))) }

// Prev returns the last tick at or before t. It is false if there is none in the LookBack before
// t.
func (l Lane) Prev(t time.Time) (Tick, bool) {
	scheduled, ok := l.Schedule.Prev(t.Add(-l.Offset))
	if !ok {
		return Tick{}, false
	}
	return l.Tick(scheduled), true
}

// Ticks yields the ticks after from, up to and including to, in order.
func (l Lane) Ticks(from, to time.Time) iter.Seq[Tick] {
	return func(yield func(Tick) bool) {
		for scheduled := range l.Schedule.Ticks(from.Add(-l.Offset), to.Add(-l.Offset)) {
			if !yield(l.Tick(scheduled)) {
				return
			}
		}
	}
}

// Count returns the number of ticks after from, up to and including to.
func (l Lane) Count(from, to time.Time) int64 {
	return l.Schedule.Count(from.Add(-l.Offset), to.Add(-l.Offset))
}

// Tick returns the lane's tick for a time in the schedule.
func (l Lane) Tick(scheduled time.Time) Tick {
	return Tick{l.LaneID, scheduled, scheduled.Add(l.Offset)}
}

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
