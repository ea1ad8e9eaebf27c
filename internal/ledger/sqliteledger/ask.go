package sqliteledger

import "quotabudget/internal/quota"

// ask is what is wanted of one bucket.
type ask struct {
	*bucket
	units  int64
	limits []quota.Limit
	held   int64 // all of the bucket
	manual bool

	draws    bool  // takes units that were set aside: they count already, nothing else held does
	reserves bool  // sets units aside
	tooLow   int64 // by how much these may be too low, of a bounded estimate
}

// asks are all the buckets of one decision, at one time.
type asks struct {
	n    int64
	list []ask
}

// asks reads the buckets of costs, and what they hold.
func (s *session) asks(credential string, costs []quota.Cost, limits []quota.Limit,
	now int64) (q asks) {
	names := make([]string, len(costs))
	for i, c := range costs {
		names[i] = c.Bucket
	}
	buckets, n := s.look(credential, names, now)
	q = asks{n: n, list: make([]ask, len(costs))}
	for i, b := range buckets {
		of := quota.LimitsOf(b.name, limits)
		q.list[i] = ask{bucket: b, units: costs[i].Units, limits: of, held: b.live()}
	}
	return q
}

// standing returns one limit at the time n, with what others used, beside what is held.
func (a ask) standing(l quota.Limit, n int64) quota.Standing {
	return a.own(l, n).With(quota.OthersIn(l.Window, a.others))
}

// own returns the standing of a limit by the log alone.
func (a ask) own(l quota.Limit, n int64) quota.Standing {
	st := quota.Standing{
		Limit: l, Log: a.bucket, Now: n, Reset: a.reset,
		Holds: []quota.Hold{{Units: a.held, ExpiresAt: quota.Never}},
	}
	switch w := l.Window; {
	case w.IsCalendar():
		start, end := w.Bounds(stamp(n))
		st.Start, st.End = start.UnixMicro(), end.UnixMicro()
	case w.IsRestoring():
		st.Level = a.level(w.Restore, n)
	}
	return st
}

// fits is when the units fit under one limit.
func (a ask) fits(l quota.Limit, n int64) int64 {
	st, limit := a.standing(l, n), l.CapAt(stamp(n), a.manual, a.draws)
	if a.draws {
		st.Holds = nil
	} else if need := st.Used() + a.held + a.units - limit; need > 0 && a.held > 0 {
		st.Holds, st.Lapsing = a.holds(n, a.held, need), a.lapsing(n)
	}
	return st.Fits(a.units, limit)
}

// remaining is the least that any limit that denies leaves now, with the units taken or without;
// false when there is none.
func (a ask) remaining(n int64, taken bool) (least int64, some bool) {
	least = quota.Never
	limits := quota.Enforced(a.limits)
	for _, l := range limits {
		left := a.left(l, n)
		if taken {
			left -= a.takes(l, n)
		}
		least = min(least, max(0, left))
	}
	return least, len(limits) > 0
}

// left is what a limit leaves, less than nothing if more is taken.
func (a ask) left(l quota.Limit, n int64) int64 {
	st := a.standing(l, n)
	return l.CapAt(stamp(n), a.manual, false) - st.Used() - st.Held()
}

// takes is how much less is left under a limit once the units are charged at n, or set aside.
func (a ask) takes(l quota.Limit, n int64) (units int64) {
	w := l.Window
	early := w.Anchored && n < a.reset-w.Length.Microseconds() // the clock was set back
	if !early || a.reserves {
		units = a.units
	}
	if a.draws { // they were held before
		units -= a.units
	}
	return units
}

// verdict says when the whole of it would fit, and which limit makes it wait the longest.
type verdict struct {
	fitsAt int64
	limit  string // "" when it fits at once
}

// later makes it the verdict of a limit that makes it wait longer.
func (v *verdict) later(at int64, limit string) {
	if at > v.fitsAt {
		*v = verdict{at, limit}
	}
}

// judge finds the verdict, and that of the limits that are only observed; on a tie the first in the
// order asked for is named, a bucket's suspension before its limits, and a pace only where nothing
// else denies.
func (q asks) judge() (denies, would verdict) {
	denies, would = verdict{fitsAt: q.n}, verdict{fitsAt: q.n}
	paced := make(map[*verdict]bool)
	for _, a := range q.list {
		denies.later(a.suspended, quota.Suspended)
		inFlight := a.atMost - a.expired.atMost - a.held
		if a.tooLow > 0 && inFlight+a.tooLow > quota.Slack(a.limits) {
			denies.later(quota.Never, quota.TooManyEstimates)
		}
		for _, l := range a.limits {
			v, at := &denies, a.fits(l, q.n)
			if l.Observe {
				v = &would
			}
			if l.Pace != nil {
				paced[v] = paced[v] || at > q.n
			} else {
				v.later(at, l.Name())
			}
		}
	}
	for v, isPaced := range paced {
		if isPaced && v.limit == "" {
			*v = verdict{quota.Never, quota.PaceName} // the budget knows when the line is there
		}
	}
	return denies, would
}

// decision is the answer, of which an allowed one is yet to be written. now is the clock's time.
func (q asks) decision(now int64, observe bool) quota.Decision {
	v, would := q.judge()
	if v.limit == "" {
		v, observe = would, true
	}
	fits := v.limit == ""
	d := quota.Decision{
		Allowed:   fits || observe,
		Observed:  !fits && observe,
		At:        stamp(now),
		Units:     make(map[string]int64, len(q.list)),
		Remaining: make(map[string]int64, len(q.list)),
		Limit:     v.limit,
	}
	if d.Allowed {
		d.At = stamp(q.n)
	}
	if !fits && v.fitsAt < quota.Never {
		d.RetryAt = stamp(v.fitsAt)
	}
	for _, a := range q.list {
		d.Units[a.name] = a.units
		if left, limited := a.remaining(q.n, d.Allowed); limited && q.n < a.suspended {
			d.Remaining[a.name] = 0
		} else if limited {
			d.Remaining[a.name] = left
		}
	}
	return d
}
