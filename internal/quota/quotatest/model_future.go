package quotatest

import (
	"fmt"
	"slices"

	"quotabudget/internal/quota"
)

// ask is a request for cost more units under cap.
type ask struct {
	cost, cap int64
	holds     bool // holds count
	own       bool // what others used does not
}

// future is some buckets as they will be, if nobody does anything and holds lapse.
type future struct {
	now     int64 // the clock
	buckets []*bucket
	seen    map[int64]sight
}

// sight is the buckets at one time of the clock, and the moment at which to decide then.
type sight struct {
	buckets []*bucket
	n       int64
}

func newFuture(now int64, buckets []*bucket) *future {
	return &future{now, buckets, map[int64]sight{}}
}

// at looks at a time of the clock.
func (f *future) at(clock int64) sight {
	s, known := f.seen[clock]
	if !known {
		for _, b := range f.buckets {
			s.buckets = append(s.buckets, b.clone())
		}
		s.n = lapse(clock, s.buckets...)
		f.seen[clock] = s
	}
	return s
}

// clockFor is the first time of the clock from now on at which the decision is at n or later.
func (f *future) clockFor(n int64) int64 {
	for _, at := range append(f.expiries(), n) {
		if at <= n && f.at(at).n >= n {
			return at
		}
	}
	return n
}

// expiries are now and when holds expire, in order.
func (f *future) expiries() []int64 {
	moments := []int64{f.now}
	for _, b := range f.buckets {
		for _, h := range b.holds {
			if h.expires > f.now {
				moments = append(moments, h.expires)
			}
		}
	}
	slices.Sort(moments)
	return moments
}

// moments are all times of the clock at which what counts in the window can become less.
func (f *future) moments(i int, w quota.Window, a ask) []int64 {
	expiries := f.expiries()
	last := f.at(expiries[len(expiries)-1]).buckets[i] // with all lapses
	moments := append(slices.Clone(expiries), last.reset)
	switch {
	case w.IsCalendar():
		stamps := []int64{f.at(f.now).n}
		for _, e := range last.entries {
			stamps = append(stamps, e.at)
		}
		for _, stamp := range stamps {
			_, end := w.Bounds(moment(stamp))
			moments = append(moments, end.UnixMicro())
		}
	case w.IsRestoring(): // when the level leaves room, if nothing lapses meanwhile
		num, den := w.Restore.Terms()
		for _, at := range expiries {
			s := f.at(at)
			b := s.buckets[i]
			over := level(b, w, s.n) - (a.cap-a.cost-a.held(b, s.n))*den
			moments = append(moments, s.n+max(0, (over+num-1)/num))
		}
	default:
		if o := last.others[w.String()]; o.units > 0 {
			moments = append(moments, o.at+w.Length.Microseconds())
		}
		for _, e := range last.entries {
			moments = append(moments, e.at+w.Length.Microseconds())
		}
	}
	for _, at := range slices.Clone(moments) {
		moments = append(moments, f.clockFor(at))
	}
	slices.Sort(moments)
	return slices.Compact(moments)
}

func (a ask) held(b *bucket, n int64) int64 {
	if a.holds {
		return b.held(n)
	}
	return 0
}

// fits reports whether the units fit in bucket i at a time of the clock.
func (f *future) fits(i int, w quota.Window, clock int64, a ask) bool {
	s := f.at(clock)
	b := s.buckets[i]
	of := b
	if a.own {
		of = b.alone()
	}
	return usedIn(of, w, s.n)+a.held(b, s.n)+a.cost <= a.cap
}

// earliest tries every moment from a time of the clock on at which anything changes, and then the
// microsecond before; quota.Never when the units fit at none.
func (f *future) earliest(i int, w quota.Window, from int64, a ask) int64 {
	if f.fits(i, w, from, a) {
		return from
	}
	for _, at := range f.moments(i, w, a) {
		if at <= from || !f.fits(i, w, at, a) {
			continue
		}
		if at-1 > from && f.fits(i, w, at-1, a) {
			panic(fmt.Sprintf("quotatest: %d units fit before %d already", a.cost, at))
		}
		return at
	}
	return quota.Never
}

// nextFree is the first time of the clock at which less of bucket i is taken than now; 0 for none.
func (f *future) nextFree(i int, w quota.Window) int64 {
	s := f.at(f.now)
	taken := usedIn(s.buckets[i], w, s.n) + s.buckets[i].held(s.n)
	if taken == 0 {
		return 0
	}
	at := f.earliest(i, w, f.now, ask{1, taken, true, false})
	if at == quota.Never {
		return 0
	}
	return at
}
