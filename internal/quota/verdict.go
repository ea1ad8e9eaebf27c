package quota

import (
	"cmp"
	"slices"
	"time"
)

// ask is a request for units of one bucket.
type ask struct {
	*Bucket
	units    int64
	limits   []Limit
	manual   bool
	draws    bool // on units that are held, which count already
	reserves bool
	tooLow   int64 // units by which the bounded estimate of a hold may be too low
}

// asks returns the requests of one decision, one for each bucket.
func (a *Account) asks(costs []Cost, limits []Limit) []ask {
	asks := make([]ask, len(costs))
	for i, b := range a.Buckets {
		asks[i] = ask{Bucket: b, units: costs[i].Units, limits: LimitsOf(b.Name, limits)}
	}
	return asks
}

// Never is a moment that does not come, in Unix µs.
const Never = int64(1) << 62

// verdict is the clock's time from which a request fits, and the limit that makes it wait longest.
type verdict struct {
	at    int64
	limit string // "" when it fits now
}

// later makes it the verdict of a limit that makes the request wait longer.
func (v *verdict) later(at int64, limit string) {
	if at > v.at {
		*v = verdict{at, limit}
	}
}

// judge returns the verdict of the limits that deny, or of those that are only observed. On a tie
// it names the first in the order of the request, the suspension of a bucket before its limits. It
// names a pace only where nothing else denies; the Budget computes when the line is high enough.
func (a *Account) judge(asks []ask, observed bool) verdict {
	v, paced := verdict{at: a.n}, false
	for {
		from := v.at
		for _, q := range asks {
			if !observed {
				v.later(q.State.SuspendedUntil, Suspended)
				if q.tooMany(a.n) {
					v.later(Never, TooManyEstimates)
				}
			}
			for _, l := range q.limits {
				if l.Observe != observed {
					continue
				}
				most := l.CapAt(time.UnixMicro(a.n), q.manual, q.draws)
				if l.Pace != nil {
					paced = paced || q.fits(l, a.n, q.units, most, q.draws) > a.n
				} else {
					v.later(q.fits(l, from, q.units, most, q.draws), l.Name())
				}
			}
		}
		switch {
		case paced && v.limit == "":
			return verdict{Never, PaceName}
		case v.limit == "" || v.at >= Never || a.err() != nil:
			return v
		case v.at == from || !a.lapsing():
			clock, n := a.reachable(v.at)
			if n == v.at {
				v.at = clock
				return v
			}
			v.at = n
		}
	}
}

// lapsing reports whether holds become entries later: then a limit under which a cost fits at one
// moment may deny it at a later one.
func (a *Account) lapsing() bool {
	return slices.ContainsFunc(a.Buckets, func(b *Bucket) bool { return b.first < Never })
}

// reachable returns the earliest time of the clock at which a decision is made at n or later, and
// when it is made then: entries of holds that lapse together have stamps of their own, and a
// decision comes after these.
func (a *Account) reachable(n int64) (clock, at int64) {
	var lapses []lapse
	for _, b := range a.Buckets {
		if b.first < Never {
			lapses = append(lapses, b.schedule()...)
		}
	}
	slices.SortFunc(lapses, func(x, y lapse) int {
		return cmp.Compare(x.hold.Expires, y.hold.Expires)
	})
	from, to := int64(0), int64(-1) // a run of lapses, up to the decision after it
	for _, l := range lapses {
		if l.at < a.n {
			continue
		}
		if l.hold.Expires <= to {
			to = max(to, l.at+1)
			continue
		}
		if to >= n {
			break
		}
		from, to = l.hold.Expires, l.at+1
	}
	if from <= n && n <= to {
		return from, to
	}
	return n, n
}

// decision returns the answer. The caller writes the change of an allowed one.
func (a *Account) decision(asks []ask, observe bool) Decision {
	v := a.judge(asks, false)
	if v.limit == "" {
		v, observe = a.judge(asks, true), true
	}
	fits := v.limit == ""
	d := Decision{
		Allowed:   fits || observe,
		Observed:  !fits && observe,
		At:        stampTime(a.Now),
		Units:     make(map[string]int64, len(asks)),
		Remaining: make(map[string]int64, len(asks)),
		Limit:     v.limit,
	}
	if d.Allowed {
		d.At = stampTime(a.n)
	}
	if !fits && v.at < Never {
		d.RetryAt = stampTime(v.at)
	}
	for _, q := range asks {
		d.Units[q.Name] = q.units
		if left, limited := q.remaining(a.n, d.Allowed); limited && a.n < q.State.SuspendedUntil {
			d.Remaining[q.Name] = 0
		} else if limited {
			d.Remaining[q.Name] = left
		}
	}
	return d
}

// remaining returns the least that any limit that denies leaves at n, with the units taken or
// without; false when there is none.
func (q ask) remaining(n int64, taken bool) (least int64, some bool) {
	held, _ := q.held(n)
	least = Never
	for _, l := range q.limits {
		if l.Observe {
			continue
		}
		left := l.CapAt(time.UnixMicro(n), q.manual, false) - q.used(l, n) - held
		if taken {
			left -= q.takes(l.Window, n)
		}
		least, some = min(least, max(0, left)), true
	}
	return least, some
}

// takes returns how much less is left in a window once the units are charged at n, or set aside.
func (q ask) takes(w Window, n int64) (units int64) {
	early := w.Anchored && n < q.State.ResetAt-w.Length.Microseconds() // the clock was set back
	if !early || q.reserves {
		units = q.units
	}
	if q.draws { // they were held before
		units -= q.units
	}
	return units
}

// tooMany reports whether the estimates in flight, with this one, may be too low by more than
// Slack.
func (q ask) tooMany(n int64) bool {
	if q.tooLow == 0 {
		return false
	}
	held, atMost := q.held(n)
	return atMost-held+q.tooLow > Slack(q.limits)
}
