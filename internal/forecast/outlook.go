package forecast

import (
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
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
	window    quota.Window // that ends then; zero for another reason
	slides    bool         // end is no reset
	now       int64        // units for scheduled charges, suspended or not
	suspended int64        // until
	wanted    Work         // by the runs until the end
	beyond    int64        // the most that a page must find besides what it takes
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
	s.Lanes = b.taking()
	o.window, o.end, o.slides = horizon(b)
	if s.Reset = b.Reset; !s.Reset.IsCalendar() {
		s.Reset = quota.Window{Calendar: "day", Zone: time.UTC}
	}
	s.To = o.end
	s.Before = []sim.Standing{{
		Bucket: b.Name, Spent: b.Spent, Reservations: b.Reservations,
		SuspendedUntil: b.SuspendedUntil, ResetAt: b.ResetAt,
	}}
	for _, l := range s.Lanes {
		runs := l.Count(b.At, o.end.Add(-time.Nanosecond))
		pages := max(0, l.Pages)
		o.wanted = o.wanted.and(Work{runs, runs * pages, l.Takes(b.Name, runs*pages, nil)})
		o.beyond = max(o.beyond, l.Price[0].Units-l.Takes(b.Name, 1, nil))
	}
	if like != nil {
		s.Like = like.course
	}
	o.course = s.Prepare()
	o.now = o.course.Play().Room(b.At.UnixMicro())
	if !b.SuspendedUntil.IsZero() {
		o.suspended = b.SuspendedUntil.UnixMicro()
	}
	brakes := slices.Concat(throttles, b.Paces)
	for _, l := range s.Lanes {
		if l.Own != nil {
			brakes = append(brakes, *l.Own...)
		}
	}
	for _, l := range brakes {
		if l.Bucket == b.Name && !slices.Contains(o.brakes, l.Name()) {
			o.brakes = append(o.brakes, l.Name())
		}
	}
	return o
}

// taking are the lanes that take from the bucket, with their prices of it alone.
func (b Bucket) taking() (lanes []share.Lane) {
	usual := []quota.Cost{{Bucket: b.Name, Units: b.Price}}
	for _, l := range b.Lanes {
		units, took := quota.UnitsOf(l.PriceOr(usual))[b.Name], quota.UnitsOf(l.Took)[b.Name]
		if units > 0 || took > 0 {
			l.Took = []quota.Cost{{Bucket: b.Name, Units: took}}
			l.Price = []quota.Cost{{Bucket: b.Name, Units: units}}
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// split is the bucket's limits and its throttles. Where there are no others, throttles are limits.
func split(b Bucket) (limits, throttles []quota.Limit) {
	for _, l := range of(b.Name, b.Limits) {
		if l.Reach() >= shortest {
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

// horizon is the upstream's day, or the calendar window of a limit that is longer, and its end.
// Without any, it is when the longest window ends that the upstream tells of, or else one longest
// window from now.
func horizon(b Bucket) (calendar quota.Window, end time.Time, slides bool) {
	calendar = b.Reset
	var longest quota.Limit
	for _, l := range of(b.Name, b.Limits) {
		if l.Window.IsCalendar() && l.Window.Longest() > calendar.Longest() {
			calendar = l.Window
		}
		if l.Reach() > longest.Reach() {
			longest = l
		}
	}
	switch {
	case calendar.IsCalendar():
		_, end = calendar.Bounds(b.At)
		return calendar, end.UTC(), false
	case longest.Window.Anchored && b.ResetAt.After(b.At):
		return calendar, b.ResetAt.UTC(), false
	}
	return calendar, b.At.Add(max(time.Hour, longest.Reach())).UTC(), true
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
