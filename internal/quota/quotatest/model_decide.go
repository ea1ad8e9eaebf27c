package quotatest

import (
	"fmt"
	"slices"

	"quotabudget/internal/quota"
)

// arithmetic is the part of the model that ledgers do cleverly.
type arithmetic interface {
	// used is the units of the entries inside the window at n.
	used(b *bucket, w quota.Window, n int64) int64
	// earliest is the first moment from n on at which cost more units fit under cap; quota.Never
	// when none is.
	earliest(b *bucket, w quota.Window, a ask) int64
	// nextFree is when the next units come free; 0 when none are taken.
	nextFree(b *bucket, w quota.Window, n int64) int64
}

type ask struct {
	n, cost, cap int64
	holds        bool // holds count
}

func (m *Model) sums() arithmetic {
	if m.arithmetic == nil {
		return bruteForce{}
	}
	return m.arithmetic
}

// rule is how a decision treats the limits.
type rule struct {
	n       int64
	manual  bool
	drawn   string // bucket drawn on; "" for none
	settled bool   // of a commit: suspension does not matter
}

// verdict is the moment from which a charge is allowed and, when that is later than n, what denies
// until then.
type verdict struct {
	at    int64
	limit string
}

// decision is one that denies; a denial is at the time of the clock.
func (v verdict) decision(now int64, costs []quota.Cost) quota.Decision {
	return quota.Decision{
		At: moment(now), Units: quota.UnitsOf(costs), Limit: v.limit, RetryAt: moment(v.at),
	}
}

func (m *Model) verdict(cred *credential, costs []quota.Cost, limits []quota.Limit,
	r rule) verdict {
	v, paced := verdict{at: 0}, false
	later := func(at int64, name string) {
		if at > r.n && at > v.at {
			v = verdict{at, name}
		}
	}
	for _, cost := range costs {
		b, draw := cred.bucket(cost.Bucket), cost.Bucket == r.drawn
		later(b.suspendedUntil, quota.Suspended)
		for _, l := range limits {
			if l.Bucket == cost.Bucket {
				a := ask{r.n, cost.Units, l.CapAt(moment(r.n), r.manual, draw), !draw}
				at := m.sums().earliest(b, l.Window, a)
				if l.Pace != nil {
					paced = paced || at > r.n
				} else {
					later(at, l.Name())
				}
			}
		}
	}
	if paced && v.at == 0 {
		return verdict{quota.Never, quota.PaceName}
	}
	return v
}

// remaining is what still fits now, by bucket.
func (m *Model) remaining(cred *credential, costs []quota.Cost, limits []quota.Limit,
	r rule) map[string]int64 {
	left := map[string]int64{}
	for _, cost := range costs {
		b := cred.bucket(cost.Bucket)
		for _, l := range limits {
			if l.Bucket != cost.Bucket {
				continue
			}
			taken := m.sums().used(b, l.Window, r.n) + b.held(r.n)
			room := max(0, l.CapAt(moment(r.n), r.manual, false)-taken)
			if b.suspendedUntil > r.n && !r.settled {
				room = 0
			}
			if least, ok := left[cost.Bucket]; !ok || room < least {
				left[cost.Bucket] = room
			}
		}
	}
	return left
}

func (b *bucket) held(n int64) int64 {
	var sum int64
	for _, h := range b.holds {
		if n < h.expires {
			sum += h.left
		}
	}
	return sum
}

// bruteForce loops over everything.
type bruteForce struct{}

func inside(w quota.Window, stamp, n int64) bool {
	if w.IsCalendar() {
		start, _ := w.Bounds(moment(n))
		return stamp >= start.UnixMicro()
	}
	return stamp > n-w.Length.Microseconds()
}

func (bruteForce) used(b *bucket, w quota.Window, n int64) int64 {
	var sum int64
	for _, e := range b.entries {
		if inside(w, e.at, n) {
			sum += e.units
		}
	}
	return sum
}

func (f bruteForce) fits(b *bucket, w quota.Window, a ask, n int64) bool {
	taken := f.used(b, w, n)
	if a.holds {
		taken += b.held(n)
	}
	return taken+a.cost <= a.cap
}

// earliest tries every moment at which anything changes, and then the microsecond before.
func (f bruteForce) earliest(b *bucket, w quota.Window, a ask) int64 {
	moments := []int64{a.n}
	for _, e := range b.entries {
		if !w.IsCalendar() {
			moments = append(moments, e.at+w.Length.Microseconds())
		}
	}
	for _, h := range b.holds {
		moments = append(moments, h.expires)
	}
	if w.IsCalendar() {
		_, end := w.Bounds(moment(a.n))
		moments = append(moments, end.UnixMicro())
	}
	slices.Sort(moments)
	for _, at := range moments {
		if at < a.n || !f.fits(b, w, a, at) {
			continue
		}
		if at > a.n && f.fits(b, w, a, at-1) {
			panic(fmt.Sprintf("quotatest: %d units fit before %d already", a.cost, at))
		}
		return at
	}
	return quota.Never
}

func (f bruteForce) nextFree(b *bucket, w quota.Window, n int64) int64 {
	next := quota.Never
	for _, e := range b.entries {
		switch {
		case !inside(w, e.at, n):
		case w.IsCalendar():
			_, end := w.Bounds(moment(n))
			next = min(next, end.UnixMicro())
		default:
			next = min(next, e.at+w.Length.Microseconds())
		}
	}
	for _, h := range b.holds {
		if h.left > 0 && n < h.expires {
			next = min(next, h.expires)
		}
	}
	if next == quota.Never {
		return 0
	}
	return next
}
