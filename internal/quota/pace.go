package quota

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// Pace keeps scheduled spending from running ahead of a line from the day's start to its reset, so
// that a job that misbehaves at night cannot take the afternoon's units. The limit "pace" denies a
// charge that would cross the line. That is not exhaustion: units are left for later. Manual
// charges and draws are not paced.
//
// The line of a limit with 9,500 units for scheduled charges, paced evenly with a slack of 500, on
// a day of 24 hours:
//
//	00:00    500       12:00  5,250       23:00  9,500
type Pace struct {
	// Curve has a weight for each of the 24 hours of the local clock; empty for an even pace.
	Curve []int64
	// Slack is how many units spending may be ahead of the curve.
	Slack int64
}

// Expiring is what one reservation still sets aside.
type Expiring struct {
	Units     int64
	ExpiresAt int64 // Unix µs
}

// PaceName is the name of a limit that is a pace.
const PaceName = "pace"

// Check reports an invalid curve or slack.
func (p Pace) Check() error {
	var sum int64
	for _, w := range p.Curve {
		if w < 0 || w > MaxUnits {
			return malformed("pace: a weight of %d: must be 0 or more", w)
		}
		sum += w
	}
	switch {
	case len(p.Curve) != 0 && len(p.Curve) != 24:
		return malformed("pace: %d hours: a curve must have 24", len(p.Curve))
	case len(p.Curve) != 0 && sum == 0:
		return malformed("pace: a curve must have a weight above 0")
	case p.Slack < 0:
		return malformed("pace: a slack of %d units: must be 0 or more", p.Slack)
	}
	return nil
}

// Line returns how many of the day's units may be used by now, in the calendar window w.
func (p Pace) Line(units int64, w Window, now time.Time) int64 {
	start, end := w.Bounds(now)
	part, whole := p.weight(w, start, now), p.weight(w, start, end)
	return min(units, p.Slack+int64(float64(units)*part/whole))
}

// When returns the first second of the window around now, not before now, at which the line has
// reached used units, or the window's end if it never does.
func (p Pace) When(units, used int64, w Window, now time.Time) time.Time {
	start, end := w.Bounds(now)
	seconds := int(end.Sub(start) / time.Second)
	n := sort.Search(seconds, func(i int) bool {
		return p.Line(units, w, start.Add(time.Duration(i)*time.Second)) >= used
	})
	at := start.Add(time.Duration(n) * time.Second)
	if at.Before(now) {
		return now
	}
	return at
}

// PacedAt returns the first second, not before from, at which units more stay within the line of l,
// which has a Pace, if no caller charges meanwhile and holds lapse as they expire. used counts in
// the window around now. A zero from means now. If no day's line is ever high enough, the result is
// the end of a day.
func (l Limit) PacedAt(used int64, holds []Expiring, units int64, now, from time.Time) time.Time {
	if from.Before(now) {
		from = now
	}
	if _, end := l.Window.Bounds(now); !from.Before(end) {
		used = 0 // a new day begins
	}
	holds = slices.Clone(holds)
	slices.SortFunc(holds, func(a, b Expiring) int { return cmp.Compare(a.ExpiresAt, b.ExpiresAt) })
	for {
		for len(holds) > 0 && holds[0].ExpiresAt <= from.UnixMicro() {
			holds = holds[1:]
		}
		spent := used
		for _, h := range holds {
			spent += h.Units
		}
		at := l.Pace.When(l.Cap(false), spent+units, l.Window, from)
		start, end := l.Window.Bounds(from)
		next := end
		if len(holds) > 0 && holds[0].ExpiresAt < end.UnixMicro() {
			next = time.UnixMicro(holds[0].ExpiresAt)
		}
		if at.Before(next) || spent == 0 && from.Equal(start) {
			return at
		}
		if from = next; next.Equal(end) {
			used = 0
		}
	}
}

// weight returns the area below the curve between two moments of one day.
func (p Pace) weight(w Window, from, to time.Time) float64 {
	if len(p.Curve) == 0 {
		return to.Sub(from).Seconds()
	}
	var sum float64
	for from.Before(to) {
		local := from.In(w.Zone)
		next := from.Add(time.Hour - into(local, time.Hour))
		if next.After(to) {
			next = to
		}
		sum += float64(p.Curve[local.Hour()]) * next.Sub(from).Seconds()
		from = next
	}
	return sum
}
