package daemon

import (
	"slices"
	"time"

	"quotabudget/internal/metrics"
	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// inForce sets what a configuration determines when it comes into force, and makes the series that
// it leads one to expect.
func (m *Metrics) inForce(w *Work, now time.Time) {
	b := w.Sweep.Budget
	m.denials.WithLabelValues(b.Credential, quota.Suspended)
	for _, l := range slices.Concat(b.Limits, b.Paces) {
		m.denials.WithLabelValues(b.Credential, l.Name())
	}
	m.interval.Reset() // a region may be gone
	intervals := make(map[*schedule.Schedule]time.Duration)
	for _, l := range w.Lanes {
		if _, known := intervals[l.Schedule]; !known {
			intervals[l.Schedule] = longestInterval(l.Lane, now)
		}
		m.interval.WithLabelValues(l.Region).Set(intervals[l.Schedule].Seconds())
		for _, kind := range metrics.FailureKinds() {
			m.failures.WithLabelValues(l.Region, kind)
		}
		for _, cost := range b.Prices[chartMethod] {
			m.spent.WithLabelValues(b.Credential, cost.Bucket, chartMethod, l.Region)
			m.cancelled.WithLabelValues(b.Credential, cost.Bucket, chartMethod, l.Region)
		}
	}
}

// longestInterval is the longest time between two ticks of the week to come, or of the next
// intervalTicks if those end before.
func longestInterval(l schedule.Lane, now time.Time) (longest time.Duration) {
	last, known := l.Prev(now)
	if !known {
		last = l.Next(now)
	}
	for n := 0; n < intervalTicks && last.At.Before(now.Add(8*24*time.Hour)); n++ {
		next := l.Next(last.At)
		longest = max(longest, next.At.Sub(last.At))
		last = next
	}
	return longest
}

const intervalTicks = 1000
