package forecast

import (
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sim"
)

// shortest is the shortest window by which a bucket runs dry: a limit on less is a throttle, which
// holds spending up. A scheduled run does not wait, and loses what a throttle denies it.
const shortest = 10 * time.Minute

// outlook is what is certain of the time from now to the reset, ready to be played.
type outlook struct {
	Bucket
	course    *sim.Course
	long      []quota.Limit // the limits without throttles
	brakes    []string      // the names of throttles and paces
	end       time.Time
	slides    bool  // end is no reset
	now       int64 // units for scheduled charges, suspended or not
	suspended int64 // until
	wanted    Work  // by the runs until the end
}

// newOutlook makes a bucket ready. like is the outlook of one with the same ticks; nil for none.
func newOutlook(b Bucket, like *outlook) *outlook {
	o := &outlook{Bucket: b}
	limits, throttles := split(b)
	o.long = limits
	s := sim.Scenario{
		Price: []quota.Cost{{Bucket: b.Name, Units: b.Price}}, Limits: limits, Throttles: throttles,
		Paces: b.Paces, From: b.At.Add(time.Microsecond), // what ticks now has run
	}
	if b.Price > 0 {
		s.Lanes = b.Lanes
	}
	s.Reset, o.end, o.slides = horizon(b)
	s.To = o.end
	s.Before = []sim.Standing{{
		Bucket: b.Name, Spent: b.Spent, Reservations: b.Reservations,
		SuspendedUntil: b.SuspendedUntil,
	}}
	for _, l := range s.Lanes {
		runs := l.Count(b.At, o.end.Add(-time.Nanosecond))
		pages := max(0, l.Pages)
		o.wanted = o.wanted.and(Work{runs, runs * pages, runs * pages * b.Price})
	}
	if like != nil {
		s.Like = like.course
	}
	o.course = s.Prepare()
	o.now = o.course.Play().Room(b.At.UnixMicro())
	if !b.SuspendedUntil.IsZero() {
		o.suspended = b.SuspendedUntil.UnixMicro()
	}
	for _, l := range slices.Concat(throttles, b.Paces) {
		if l.Bucket == b.Name && !slices.Contains(o.brakes, l.Name()) {
			o.brakes = append(o.brakes, l.Name())
		}
	}
	return o
}

// split is the bucket's limits and its throttles. Where there are no others, throttles are limits.
func split(b Bucket) (limits, throttles []quota.Limit) {
	for _, l := range of(b.Name, b.Limits) {
		if l.Window.IsCalendar() || l.Window.Length >= shortest {
			limits = append(limits, l)
		} else {
			throttles = append(throttles, l)
		}
	}
	if len(limits) == 0 {
		return throttles, nil
	}
	return limits, throttles
}

// horizon is the upstream's day, or the longest calendar window, and its end. Without one, the end
// is one longest window from now.
func horizon(b Bucket) (day quota.Window, end time.Time, slides bool) {
	var longest quota.Window
	ahead := time.Hour
	for _, l := range of(b.Name, b.Limits) {
		if l.Window.IsCalendar() && l.Window.Longest() > longest.Longest() {
			longest = l.Window
		}
		ahead = max(ahead, l.Window.Length)
	}
	for _, w := range []quota.Window{b.Reset, longest} {
		if w.IsCalendar() {
			_, end := w.Bounds(b.At)
			return w, end.UTC(), false
		}
	}
	return quota.Window{Calendar: "day", Zone: time.UTC}, b.At.Add(ahead).UTC(), true
}

// frees is when a unit comes free, now or later, if nobody spends anything; never if none does.
func (o *outlook) frees() int64 {
	at := o.course.Play().Frees(o.At.UnixMicro())
	if at == quota.Never {
		return never
	}
	return at
}

// opensFirst is when there are units for the first time, in a day that was looked at each minute.
func (o *outlook) opensFirst(t trace) int64 {
	if exact := o.frees(); t.opensFirst == 0 || t.opensFirst-exact < time.Minute.Microseconds() {
		return exact
	}
	return t.opensFirst
}

// closed reports whether a limit allows nothing.
func (o *outlook) closed() bool {
	return slices.ContainsFunc(o.long, func(l quota.Limit) bool { return l.Cap(false) == 0 })
}
