// Package schedule computes the ticks of a cron spec in a time zone, and of a job's lanes.
package schedule

import (
	"iter"
	"sync/atomic"
	"time"
)

// Schedule is the series of ticks of one spec in one zone. Parse returns it. It is safe for
// concurrent use.
//
// A cron spec names moments of the wall clock. Daylight saving is handled like this:
//
//	comes once       02:30 on most days                    a tick then
//	does not exist   02:30 on 2026-03-08 in Los Angeles    one tick at 03:00, the first moment
//	                                                       after the gap, for all in the gap
//	comes twice      01:30 on 2026-11-01 in Los Angeles    a tick at the first of the two only
//
// So a daily job runs exactly once on every day of the year, and a job of every ten minutes has
// no tick in the second 01:00-02:00. "@every 90s" is real time, counted from the Unix epoch, so
// every process has the same ticks.
//
// All returned moments are in UTC and whole seconds.
type Schedule struct {
	spec   string
	zone   *time.Location
	every  int64 // seconds of "@every"; 0 for fields
	fields cronFields
	recent atomic.Pointer[span] // the last one used
}

// String returns the spec as written.
func (s *Schedule) String() string { return s.spec }

// Next returns the first tick after t.
func (s *Schedule) Next(t time.Time) time.Time {
	return moment(s.first(t.Unix() + 1))
}

// LookBack is how far back Prev looks.
const LookBack = 366 * 24 * time.Hour

// Prev returns the last tick at or before t. ok is false if there is none in the LookBack
// before t. It searches spans that end at t, each twice as long as the one before.
func (s *Schedule) Prev(t time.Time) (last time.Time, ok bool) {
	for span := time.Minute; !ok; span *= 2 {
		for tick := range s.Ticks(t.Add(-min(span, LookBack)), t) {
			last, ok = tick, true
		}
		if span >= LookBack {
			break
		}
	}
	return last, ok
}

// Ticks yields the ticks after from, up to and including to, in order.
func (s *Schedule) Ticks(from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		last := to.Unix()
		for u := s.first(from.Unix() + 1); u <= last; u = s.first(u + 1) {
			if !yield(moment(u)) {
				return
			}
		}
	}
}

// Count returns the number of ticks after from, up to and including to.
func (s *Schedule) Count(from, to time.Time) (n int64) {
	if s.every > 0 {
		return max(0, floorDiv(to.Unix(), s.every)-floorDiv(from.Unix(), s.every))
	}
	u, end := from.Unix()+1, to.Unix()+1
	for u < end {
		in := s.spanOf(u)
		if s.skipped(in, u) {
			u, n = u+1, n+1
		}
		next := min(end, in.end)
		n += s.fields.count(max(u+in.offset, in.seen), next+in.offset)
		u = next
	}
	return n
}

func moment(unix int64) time.Time { return time.Unix(unix, 0).UTC() }

// Interval returns the shortest time between two ticks by the wall clock. It depends on the spec
// alone: it is 3h for "0 */3 * * *", although two of its ticks are 2h apart when the clock goes
// forward.
func (s *Schedule) Interval() time.Duration {
	if s.every > 0 {
		return time.Duration(s.every) * time.Second
	}
	return time.Duration(s.fields.shortest()) * time.Minute
}

// LongestInterval returns the longest time between two ticks of the next week, or of the next
// thousand ticks if they end sooner.
func (l Lane) LongestInterval(now time.Time) (longest time.Duration) {
	last, known := l.Prev(now)
	if !known {
		last = l.Next(now)
	}
	for n := 0; n < 1000 && last.At.Before(now.Add(8*24*time.Hour)); n++ {
		next := l.Next(last.At)
		longest = max(longest, next.At.Sub(last.At))
		last = next
	}
	return longest
}
