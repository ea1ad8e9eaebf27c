// Package reconcile compares what a ledger has counted with what the upstream has, and computes
// what is to be corrected. It does no I/O.
package reconcile

import (
	"time"

	"quotabudget/internal/quota"
)

// Day is a part of the log that is compared: a day of the upstream, or as much of it as the
// upstream can have counted by now.
type Day struct {
	Begin, End time.Time // 23, 24 or 25 hours
	Until      time.Time // up to which both are compared: the end of a day that is over
	// Settled is set when the upstream has surely counted all of it. Only then does less than we
	// have counted mean that we have counted too much.
	Settled bool
}

// Meter is how the upstream counts.
type Meter struct {
	Lag time.Duration // what happened longer ago has usually been counted
}

// settledAfter is how many lags after the end of a day all of it has surely been counted.
const settledAfter = 4

// Days are the last n days of the upstream, oldest first, without those of which the ledger may
// have forgotten a part: it keeps entries for so long.
func (m Meter) Days(reset quota.Window, now time.Time, n int, kept time.Duration) []Day {
	var days []Day
	at := now
	for range n {
		begin, end := reset.Bounds(at)
		if begin.Before(now.Add(-kept)) {
			break
		}
		d := Day{Begin: begin, End: end, Until: end}
		if counted := now.Add(-m.Lag).Truncate(time.Minute); counted.Before(end) {
			d.Until = counted
		} else {
			d.Settled = !end.After(now.Add(-settledAfter * m.Lag))
		}
		if d.Until.After(begin) {
			days = append([]Day{d}, days...)
		}
		at = begin.Add(-time.Microsecond)
	}
	return days
}

// Span is the part of the log, as quota.Adjust and Ledger.Between take it: after the first moment
// and up to the second.
func (d Day) Span() (after, until time.Time) {
	return d.Begin.Add(-time.Microsecond), d.Until.Add(-time.Microsecond)
}

// Verdict is what a comparison comes to.
type Verdict string

const (
	// Agrees: both have counted the same.
	Agrees Verdict = "agrees"
	// More: the upstream has counted more. Somebody spends from its quota without asking the
	// ledger.
	More Verdict = "more"
	// Less: the upstream has counted less, and will count no more.
	Less Verdict = "less"
	// Waiting: the upstream has counted less so far.
	Waiting Verdict = "waiting"
	// Unknown: the upstream says nothing about a day on which we have counted units. It may have
	// lost what it knew.
	Unknown Verdict = "unknown"
)

// Judge compares what we have counted on the day with what the upstream has; known is false where
// it says nothing. It returns the units to add to the ledger, or, negative, to take off: none
// unless the verdict is More or Less.
func (d Day) Judge(ours, theirs int64, known bool) (v Verdict, correction int64) {
	switch {
	case !known && ours > 0 && d.Settled:
		return Unknown, 0
	case theirs > ours:
		return More, theirs - ours
	case theirs < ours && d.Settled:
		return Less, theirs - ours
	case theirs < ours:
		return Waiting, 0
	}
	return Agrees, 0
}
