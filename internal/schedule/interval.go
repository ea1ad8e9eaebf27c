package schedule

import "time"

// Interval returns the shortest time between two ticks, by the wall clock: 3h for "0 */3 * * *"
// although on the day when the clock goes forward two of its ticks are 2h apart. It depends on the
// spec alone.
func (s *Schedule) Interval() time.Duration {
	if s.every > 0 {
		return time.Duration(s.every) * time.Second
	}
	return time.Duration(s.fields.shortest()) * time.Minute
}

// AverageInterval counts the ticks of the four weeks to come, or of four years when there is fewer
// than one a week. Where the shortest interval accounts for the count, the ticks are evenly spread,
// and it is the average to the second.
func (s *Schedule) AverageInterval(now time.Time) time.Duration {
	shortest := s.Interval()
	for _, days := range []int{28, 4*365 + 1} {
		ticks := time.Duration(s.Count(now, now.In(s.zone).AddDate(0, 0, days)))
		if ticks < 4 {
			continue
		}
		length := time.Duration(days) * 24 * time.Hour
		if length-ticks*shortest <= shortest+time.Hour { // an hour for a change of the clocks
			return shortest
		}
		return (length / ticks).Round(time.Second)
	}
	return shortest
}

// LongestInterval is the longest time between two ticks of the week to come, or of the next
// thousand if those end before.
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
