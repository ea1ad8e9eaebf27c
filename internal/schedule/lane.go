package schedule

import (
	"cmp"
	"iter"
	"time"
)

// Lane is the ticks of a job, or of one region of it: those of the schedule, each later by the
// offset.
type Lane struct {
	Job, Region string // Region is "" for a job that has none
	Schedule    *Schedule
	Offset      time.Duration
}

// Tick is one moment at which a lane runs.
type Tick struct {
	Job, Region string
	Scheduled   time.Time // what the schedule said
	At          time.Time // when the lane runs: Scheduled and its offset
}

// ID names the tick, the same in every process and whatever the offset:
// "asia/JP/2026-03-08T10:00:00Z", or "backfill/2026-03-08T10:00:00Z".
func (t Tick) ID() string {
	return Name(t.Job, t.Region) + "/" + t.Scheduled.UTC().Format(time.RFC3339)
}

// Title is that of the tick's lane.
func (t Tick) Title() string { return Title(t.Job, t.Region) }

// Name is that of a lane in messages and claims: "trending/BR", or "backfill" where the job has no
// regions.
func Name(job, region string) string {
	if region == "" {
		return job
	}
	return job + "/" + region
}

// Title is the short name of a lane where its job need not be told: "BR", or "backfill".
func Title(job, region string) string { return cmp.Or(region, job) }

// Next returns the first tick that runs after t.
func (l Lane) Next(t time.Time) Tick { return l.tick(l.Schedule.Next(t.Add(-l.Offset))) }

// Prev returns the last tick that does not run after t. It is false when there is none in the
// LookBack before t.
func (l Lane) Prev(t time.Time) (Tick, bool) {
	scheduled, ok := l.Schedule.Prev(t.Add(-l.Offset))
	if !ok {
		return Tick{}, false
	}
	return l.tick(scheduled), true
}

// Ticks yields the ticks that run after from and not after to, in their order.
func (l Lane) Ticks(from, to time.Time) iter.Seq[Tick] {
	return func(yield func(Tick) bool) {
		for scheduled := range l.Schedule.Ticks(from.Add(-l.Offset), to.Add(-l.Offset)) {
			if !yield(l.tick(scheduled)) {
				return
			}
		}
	}
}

// Count is how many ticks run after from and not after to.
func (l Lane) Count(from, to time.Time) int64 {
	return l.Schedule.Count(from.Add(-l.Offset), to.Add(-l.Offset))
}

func (l Lane) tick(scheduled time.Time) Tick {
	return Tick{l.Job, l.Region, scheduled, scheduled.Add(l.Offset)}
}
