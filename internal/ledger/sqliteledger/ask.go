package sqliteledger

import "quotabudget/internal/quota"

// ask is what is wanted of one bucket.
type ask struct {
	*bucket
	units  int64
	limits []quota.Limit
	manual bool
	draws  bool  // takes units that were set aside: they count already, nothing else held does
	held   int64 // all of the bucket
}

// asks are all the buckets of one decision, at one time.
type asks struct {
	n    int64
	list []ask
}

// standing is one limit at the time n, beside what is held.
func (a ask) standing(l quota.Limit, n int64) quota.Standing {
	st := quota.Standing{
		Limit: l, Log: a.bucket, Now: n,
		Holds: []quota.Hold{{Units: a.held, ExpiresAt: quota.Never}},
	}
	if l.Window.IsCalendar() {
		start, end := l.Window.Bounds(stamp(n))
		st.Start, st.End = start.UnixMicro(), end.UnixMicro()
	}
	return st
}

// fits is when the units fit under one limit.
func (a ask) fits(l quota.Limit, n int64) int64 {
	st, limit := a.standing(l, n), l.CapAt(stamp(n), a.manual, a.draws)
	if a.draws {
		st.Holds = nil
	} else {
		st.Holds = a.holds(n, a.held, st.Used()+a.held+a.units-limit)
	}
	return st.Fits(a.units, limit)
}

// remaining is the least that any limit leaves now.
func (a ask) remaining(n int64) int64 {
	least := quota.Never
	for _, l := range a.limits {
		least = min(least, a.standing(l, n).Remaining(l.CapAt(stamp(n), a.manual, false)))
	}
	return least
}

// verdict says when the whole of it would fit, and which limit makes it wait the longest.
type verdict struct {
	fitsAt int64
	limit  string // "" when it fits at once
}

// judge finds the verdict; on a tie the first in the order asked for is named, a bucket's
// suspension before its limits, and a pace only where nothing else denies.
func (q asks) judge() verdict {
	v, paced := verdict{fitsAt: q.n}, false
	for _, a := range q.list {
		if a.suspended > v.fitsAt {
			v = verdict{a.suspended, quota.Suspended}
		}
		for _, l := range a.limits {
			at := a.fits(l, q.n)
			if l.Pace != nil {
				paced = paced || at > q.n
			} else if at > v.fitsAt {
				v = verdict{at, l.Name()}
			}
		}
	}
	if paced && v.limit == "" {
		v = verdict{quota.Never, quota.PaceName} // the budget knows when the line is there
	}
	return v
}

// decision is the answer, of which an allowed one is yet to be written. now is the clock's time.
func (q asks) decision(now int64, observe bool) quota.Decision {
	v := q.judge()
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
		left := a.remaining(q.n)
		if d.Allowed && !a.draws {
			left -= a.units
		}
		if q.n < a.suspended {
			left = 0
		}
		d.Units[a.name], d.Remaining[a.name] = a.units, max(0, left)
	}
	return d
}
