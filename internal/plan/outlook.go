package plan

import (
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// shortest is the shortest window that makes a bucket run dry. A limit with a shorter window is a
// throttle, which only delays spending. A scheduled run does not wait, so it loses the pages that a
// throttle denies.
const shortest = 10 * time.Minute

// outlook holds the certain facts about the time until the reset.
type outlook struct {
	Bucket
	plan      Plan
	size      float64       // units of an unscheduled charge
	long      []quota.Limit // limits without throttles
	brakes    []string      // names of throttles and paces
	end       time.Time
	window    quota.Window // the window that ends at end; zero if none does
	slides    bool         // end is not a reset
	now       int64        // units left for scheduled charges, ignoring a suspension
	suspended int64        // end of the suspension
}

func newOutlook(b Bucket) *outlook {
	o := &outlook{Bucket: b}
	limits, throttles := split(b)
	o.long = limits
	o.window, o.end, o.slides = horizon(b)
	o.plan = Plan{
		Price: []quota.Cost{{Bucket: b.Name, Units: b.Price}}, Limits: limits, Throttles: throttles,
		Paces: b.Paces, From: b.At.Add(time.Microsecond), // the ticks at At have run
		To: o.end, Lanes: b.taking(), Reset: b.Reset,
		Before: []Standing{b.Standing},
	}
	if !o.plan.Reset.IsCalendar() {
		o.plan.Reset = quota.Window{Calendar: "day", Zone: time.UTC}
	}
	brakes := slices.Concat(throttles, b.Paces)
	for _, l := range o.plan.Lanes {
		if l.OwnPaces != nil {
			brakes = append(brakes, *l.OwnPaces...)
		}
	}
	o.now, _ = o.plan.Play().Room(b.At.UnixMicro())
	if !b.SuspendedUntil.IsZero() {
		o.suspended = b.SuspendedUntil.UnixMicro()
	}
	for _, l := range brakes {
		if l.Bucket == b.Name && !slices.Contains(o.brakes, l.Name()) {
			o.brakes = append(o.brakes, l.Name())
		}
	}
	return o
}

// taking returns the lanes that spend from the bucket, with their prices in this bucket only.
func (b Bucket) taking() (lanes []share.Lane) {
	usual := []quota.Cost{{Bucket: b.Name, Units: b.Price}}
	for _, l := range b.Lanes {
		units := quota.UnitsOf(l.PriceOr(usual))[b.Name]
		took := quota.UnitsOf(l.LearnedCosts)[b.Name]
		if units > 0 || took > 0 {
			l.LearnedCosts = []quota.Cost{{Bucket: b.Name, Units: took}}
			l.Price = []quota.Cost{{Bucket: b.Name, Units: units}}
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// split returns the bucket's limits and its throttles. If there are only throttles, they are the
// limits.
func split(b Bucket) (limits, throttles []quota.Limit) {
	for _, l := range limitsOf(b.Name, b.Limits) {
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

// horizon returns the upstream's day, or a limit's longer calendar window, and its end. Without
// either, it ends with the longest window that the upstream reported, or else one longest window
// from now.
func horizon(b Bucket) (calendar quota.Window, end time.Time, slides bool) {
	calendar = b.Reset
	var longest quota.Limit
	for _, l := range limitsOf(b.Name, b.Limits) {
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

// opensFirst returns when units are first available in a play that checked every minute.
func (o *outlook) opensFirst(p playResult) time.Time {
	exact := o.plan.Play().Frees(o.At.UnixMicro())
	looked := timeOf(p.opensFirst)
	if p.opensFirst == 0 || !exact.IsZero() && looked.Sub(exact) < time.Minute {
		return exact
	}
	return looked
}
