package bill

import (
	"time"

	"quotabudget/internal/quota"
)

// Day is a part of the log to compare: a day of the upstream, or as much of it as the upstream
// can have counted by now.
type Day struct {
	Begin, End time.Time // 23, 24 or 25 hours apart; or a window in progress
	Until      time.Time // end of the comparison; End for a day that is over
	// Settled is set when the upstream is certain to have counted the whole day. Only then does a
	// smaller count mean that the ledger has too much.
	Settled bool
}

// settledAfter is the number of lags after a day's end by which it has certainly been counted.
const settledAfter = 4

// Days returns the last n days of the upstream, oldest first, except days of which the ledger may
// have dropped entries. It keeps them for the retention. Usage older than lag has usually been
// counted. If the upstream can be asked about a part of a day (ranged), today ends there; else it
// ends now, and the upstream's count is of less.
func Days(reset quota.Window, now time.Time, n int, lag, retention time.Duration,
	ranged bool) []Day {
	var days []Day
	at, counted := now, now
	if ranged {
		counted = now.Add(-lag).Truncate(time.Minute)
	}
	for range n {
		begin, end := reset.Bounds(at)
		if begin.Before(now.Add(-retention)) {
			break
		}
		d := Day{Begin: begin, End: end, Until: end}
		if counted.Before(end) {
			d.Until = counted
		} else {
			d.Settled = !end.After(now.Add(-settledAfter * lag))
		}
		if d.Until.After(begin) {
			days = append([]Day{d}, days...)
		}
		at = begin.Add(-time.Microsecond)
	}
	return days
}

// Span returns the part of the log in the form of quota.Adjust and Ledger.Between: after the
// first moment, up to the second.
func (d Day) Span() (after, until time.Time) {
	return d.Begin.Add(-time.Microsecond), d.Until.Add(-time.Microsecond)
}

// Verdict is the result of a comparison.
type Verdict string

const (
	// Agrees: the counts are equal.
	Agrees Verdict = "agrees"
	// More: the upstream has counted more, so some program spends its quota without the ledger.
	More Verdict = "more"
	// Less: the upstream has counted less, and its count is final.
	Less Verdict = "less"
	// Waiting: the upstream has counted less so far.
	Waiting Verdict = "waiting"
	// Unknown: the upstream reports nothing about a day with units in the ledger. It may have
	// lost the data.
	Unknown Verdict = "unknown"
)

// Judge compares the ledger's count with the upstream's; known is false if the upstream reports
// nothing. Slack is how much smaller the upstream's count may be all the same. The correction is
// the number of units to add to the ledger, negative to remove. It is 0 unless the verdict is More
// or Less.
func (d Day) Judge(ours, theirs int64, known bool, slack int64) (v Verdict, correction int64) {
	switch {
	case !known && ours > 0 && d.Settled:
		return Unknown, 0
	case theirs > ours:
		return More, theirs - ours
	case theirs < ours && known && ours-theirs <= slack:
		return Agrees, 0
	case theirs < ours && d.Settled:
		return Less, theirs - ours
	case theirs < ours:
		return Waiting, 0
	}
	return Agrees, 0
}
