package quotatest

import (
	"slices"

	"quotabudget/internal/quota"
)

// rule is how a decision treats the limits.
type rule struct {
	n       int64
	manual  bool
	drawn   string // bucket drawn on; "" for none
	settled bool   // of a commit: suspension does not matter
}

// verdict is the moment from which a charge is allowed and, when it is denied, what denies it
// longest.
type verdict struct {
	at    int64
	limit string
}

// decision is one that denies; a denial is at the time of the clock.
func (v verdict) decision(now int64, costs []quota.Cost) quota.Decision {
	if v.limit == "" {
		v.at = 0
	}
	return quota.Decision{
		At: moment(now), Units: quota.UnitsOf(costs), Limit: v.limit, RetryAt: moment(v.at),
	}
}

// verdicts are that of what denies, and that of the limits that are only observed.
func (m *Model) verdicts(cred *credential, costs []quota.Cost, limits []quota.Limit,
	r rule) (denies, would verdict) {
	watched := slices.DeleteFunc(slices.Clone(limits),
		func(l quota.Limit) bool { return !l.Observe })
	open := r
	open.settled = true
	return m.verdict(cred, costs, quota.Enforced(limits), r),
		m.verdict(cred, costs, watched, open)
}

func (m *Model) verdict(cred *credential, costs []quota.Cost, limits []quota.Limit,
	r rule) verdict {
	future := newFuture(m.clock(), cred.all(costs))
	v, paced := verdict{at: m.clock()}, false
	for {
		from := v.at
		later := func(at int64, name string) {
			if at > v.at {
				v = verdict{at, name}
			}
		}
		for i, cost := range costs {
			draw := cost.Bucket == r.drawn
			if until := future.buckets[i].suspendedUntil; !r.settled && until > r.n {
				later(future.clockFor(until), quota.Suspended)
			}
			for _, l := range quota.LimitsOf(cost.Bucket, limits) {
				a := ask{cost.Units, l.CapAt(moment(r.n), r.manual, draw), !draw, l.Pace != nil}
				at := future.earliest(i, l.Window, from, a)
				if l.Pace != nil {
					paced = paced || at > m.clock()
				} else {
					later(at, l.Name())
				}
			}
		}
		switch {
		case paced && v.limit == "":
			return verdict{quota.Never, quota.PaceName}
		case v.at == from || v.at == quota.Never:
			return v
		}
	}
}

// remaining is what still fits now, by bucket.
func (m *Model) remaining(cred *credential, costs []quota.Cost, limits []quota.Limit,
	r rule) map[string]int64 {
	left := map[string]int64{}
	for _, cost := range costs {
		b := cred.bucket(cost.Bucket)
		for _, l := range limits {
			if l.Bucket != cost.Bucket || l.Observe {
				continue
			}
			of := b
			if l.Pace != nil {
				of = b.alone()
			}
			taken := usedIn(of, l.Window, r.n) + b.held(r.n)
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

// atMost is what the holds can turn out to take.
func (b *bucket) atMost(n int64) (sum int64) {
	for _, h := range b.holds {
		if n < h.expires {
			sum += h.atMost()
		}
	}
	return sum
}

func (h hold) atMost() int64 { return max(h.left, h.most-h.drawn) }

func inside(w quota.Window, reset, stamp, n int64) bool {
	length := w.Length.Microseconds()
	switch {
	case w.IsCalendar():
		start, _ := w.Bounds(moment(n))
		return stamp >= start.UnixMicro()
	case w.Concurrent:
		return false
	case w.Anchored && reset > n:
		return stamp > n-length && stamp >= reset-length
	case w.Anchored:
		return stamp > n-length && stamp >= reset
	}
	return stamp > n-length
}

// usedIn is the units of the entries inside the window at n.
func usedIn(b *bucket, w quota.Window, n int64) int64 {
	if w.IsRestoring() {
		_, den := w.Restore.Terms()
		return (level(b, w, n) + den - 1) / den
	}
	var sum int64
	for _, e := range b.entries {
		if inside(w, b.reset, e.at, n) {
			sum += e.units
		}
	}
	if o := b.others[w.String()]; o.units > 0 && inside(w, b.reset, o.at, n) {
		sum += o.units
	}
	return sum
}

// alone is the bucket without what others used.
func (b *bucket) alone() *bucket {
	own := *b
	own.others = nil
	return &own
}

// level adds up what was charged from each entry on, less what was restored since.
func level(b *bucket, w quota.Window, n int64) (most int64) {
	num, den := w.Restore.Terms()
	var sum int64
	for _, e := range slices.Backward(b.entries) {
		sum += e.units * den
		most = max(most, sum-num*(n-e.at))
	}
	if o := b.others[w.String()]; o.units > 0 {
		for _, e := range b.entries {
			if e.at >= o.at {
				o.level += e.units * den
			}
		}
		most = max(most, o.level-num*(n-o.at))
	}
	return most
}
