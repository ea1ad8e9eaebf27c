package schedule

import "time"

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
