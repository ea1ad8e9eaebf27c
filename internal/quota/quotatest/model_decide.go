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
	v, paced := verdict{at: 0}, false
	later := func(at int64, name string) {
		if at > r.n && at > v.at {
			v = verdict{at, name}
		}
	}
	for _, cost := range costs {
		b, draw := cred.bucket(cost.Bucket), cost.Bucket == r.drawn
		if !r.settled {
			later(b.suspendedUntil, quota.Suspended)
		}
		for _, l := range limits {
			if l.Bucket == cost.Bucket {
				a := ask{r.n, cost.Units, l.CapAt(moment(r.n), r.manual, draw), !draw}
				if l.Pace != nil {
					paced = paced || m.sums().earliest(b.alone(), l.Window, a) > r.n
				} else {
					later(m.sums().earliest(b, l.Window, a), l.Name())
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
			if l.Bucket != cost.Bucket || l.Observe {
				continue
			}
			of := b
			if l.Pace != nil {
				of = b.alone()
			}
			taken := m.sums().used(of, l.Window, r.n) + b.held(r.n)
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

// bruteForce loops over everything.
type bruteForce struct{}

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

func (bruteForce) used(b *bucket, w quota.Window, n int64) int64 {
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

// lapsing reports whether a hold of the bucket becomes an entry if nobody settles it.
func (b *bucket) lapsing(n int64) bool {
	is := func(h hold) bool { return h.lapse == quota.LapseCharge && h.expires > n }
	return slices.ContainsFunc(b.holds, is)
}

// lapsing reports whether it is so of one of the costs' buckets, and whether there is an estimate
// among what these hold.
func (m *Model) lapsing(credential string, costs []quota.Cost) (some, estimates bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.credential(credential).all(costs) {
		some = some || b.lapsing(m.clock())
		estimates = estimates || b.atMost(m.clock()) > b.held(m.clock())
	}
	return some, some && estimates
}

// counts is a hold, and until when it counts if nobody settles it.
type counts struct{ until, units int64 }

// holding lists the holds at n. Where entries may come of some, all are taken to become some: see
// quota.Standing.
func (b *bucket) holding(w quota.Window, n int64) (list []counts) {
	later := func(expires int64) int64 { return expires }
	switch {
	case !b.lapsing(n) || w.Concurrent:
	case w.IsRestoring():
		num, den := w.Restore.Terms()
		all := level(b, w, n) + b.held(n)*den
		later = func(expires int64) int64 { return expires + all/num + 1 + quota.LapseSlack }
	case w.IsCalendar():
		_, end := w.Bounds(moment(n))
		later = func(expires int64) int64 {
			if expires+quota.LapseSlack < end.UnixMicro() {
				return end.UnixMicro()
			}
			return expires + quota.LapseSlack + w.Longest().Microseconds()
		}
	default:
		later = func(expires int64) int64 {
			if w.Anchored && b.reset > n && expires+quota.LapseSlack < b.reset {
				return b.reset
			}
			return expires + quota.LapseSlack + w.Length.Microseconds()
		}
	}
	for _, h := range b.holds {
		if h.expires > n {
			list = append(list, counts{later(h.expires), h.left})
		}
	}
	return list
}

// heldAt adds up what counts of holds at the time at.
func heldAt(holds []counts, at int64) (sum int64) {
	for _, h := range holds {
		if at < h.until {
			sum += h.units
		}
	}
	return sum
}

// earliest tries every moment at which anything changes, and then the microsecond before.
func (f bruteForce) earliest(b *bucket, w quota.Window, a ask) int64 {
	var holds []counts
	if a.holds {
		holds = b.holding(w, a.n)
	}
	moments := []int64{a.n, b.reset}
	for _, e := range b.entries {
		if !w.IsCalendar() && !w.IsRestoring() {
			moments = append(moments, e.at+w.Length.Microseconds())
		}
	}
	if o := b.others[w.String()]; o.units > 0 && !w.IsCalendar() && !w.IsRestoring() {
		moments = append(moments, o.at+w.Length.Microseconds())
	}
	for _, h := range holds {
		moments = append(moments, h.until)
	}
	if w.IsCalendar() {
		_, end := w.Bounds(moment(a.n))
		moments = append(moments, end.UnixMicro())
	}
	if w.IsRestoring() { // when the level leaves room beside what is still held at some moment
		num, den := w.Restore.Terms()
		now := level(b, w, a.n)
		for _, at := range slices.Clone(moments) {
			over := now - (a.cap-a.cost-heldAt(holds, at))*den
			moments = append(moments, a.n+(over+num-1)/num)
		}
	}
	fits := func(at int64) bool { return f.used(b, w, at)+heldAt(holds, at)+a.cost <= a.cap }
	slices.Sort(moments)
	for _, at := range slices.Compact(moments) {
		if at < a.n || !fits(at) {
			continue
		}
		if at > a.n && fits(at-1) {
			panic(fmt.Sprintf("quotatest: %d units fit before %d already", a.cost, at))
		}
		return at
	}
	return quota.Never
}

func (f bruteForce) nextFree(b *bucket, w quota.Window, n int64) int64 {
	next := quota.Never
	all := slices.Clone(b.entries)
	if o := b.others[w.String()]; o.units > 0 {
		all = append(all, entry{at: o.at, units: o.units})
	}
	for _, e := range all {
		switch {
		case w.IsRestoring() || !inside(w, b.reset, e.at, n):
		case w.IsCalendar():
			_, end := w.Bounds(moment(n))
			next = min(next, end.UnixMicro())
		case w.Anchored && b.reset > n:
			next = min(next, b.reset)
		default:
			next = min(next, e.at+w.Length.Microseconds())
		}
	}
	if used := f.used(b, w, n); w.IsRestoring() && used > 0 {
		num, den := w.Restore.Terms()
		next = n + (level(b, w, n)-(used-1)*den+num-1)/num
	}
	for _, h := range b.holding(w, n) {
		if h.units > 0 {
			next = min(next, h.until)
		}
	}
	if next == quota.Never {
		return 0
	}
	return next
}
