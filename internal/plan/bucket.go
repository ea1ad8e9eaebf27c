package plan

import (
	"cmp"
	"math"
	"slices"

	"quotabudget/internal/quota"
)

// bucket is one bucket that a page is charged to.
type bucket struct {
	name      string
	cost      int64 // of a page
	log       log
	windows   []window // limits first, then paces
	holds     []quota.Hold
	held      int64
	suspended int64 // until
	wanted    int64 // units, of the upstream day
	spent     int64
}

func newBucket(p *Plan, cost quota.Cost) *bucket {
	b := &bucket{name: cost.Bucket, cost: cost.Units, suspended: math.MinInt64}
	b.log.newest = math.MinInt64
	for _, l := range slices.Concat(p.Limits, p.Paces) {
		if l.Bucket == b.name {
			b.windows = append(b.windows, newWindow(l))
		}
	}
	for _, s := range p.Before {
		if s.Bucket == b.name {
			b.begin(s)
		}
	}
	return b
}

func (b *bucket) begin(s Standing) {
	for _, e := range s.Entries {
		b.log.add(e.At.UnixMicro(), e.Units)
	}
	for _, r := range s.Reservations {
		b.holds = append(b.holds, quota.Hold{Units: r.Left, ExpiresAt: r.ExpiresAt.UnixMicro()})
		b.held += r.Left
	}
	slices.SortFunc(b.holds, func(x, y quota.Hold) int { return cmp.Compare(x.ExpiresAt, y.ExpiresAt) })
	if !s.SuspendedUntil.IsZero() {
		b.suspended = s.SuspendedUntil.UnixMicro()
	}
}

// lapse forgets the reservations that have expired at n.
func (b *bucket) lapse(n int64) {
	for len(b.holds) > 0 && b.holds[0].ExpiresAt <= n {
		b.held -= b.holds[0].Units
		b.holds = b.holds[1:]
	}
}

// fits says whether a page may be charged at n.
func (b *bucket) fits(n int64, unpaced bool) bool {
	b.lapse(n)
	if n < b.suspended {
		return false
	}
	for i := range b.windows {
		w := &b.windows[i]
		if used := w.used(&b.log, n); unpaced && w.limit.Pace != nil {
			continue
		} else if used+b.held+b.cost > w.allows(n) {
			return false
		}
	}
	return true
}

// charge writes a page that fits.
func (b *bucket) charge(n int64) {
	if b.log.full() {
		b.trim()
	}
	b.log.add(n, b.cost)
	b.spent += b.cost
	b.see(n)
}

// see notes how much is used at n.
func (b *bucket) see(n int64) {
	b.lapse(n)
	for i := range b.windows {
		w := &b.windows[i]
		use, most := w.used(&b.log, n)+b.held, w.allows(n)
		w.peak.see(use, n, most)
		w.ever.see(use, n, most)
	}
}

// trim forgets the entries that no window will see again, when they are many.
func (b *bucket) trim() {
	gone := len(b.log.stamps)
	for i := range b.windows {
		gone = min(gone, b.windows[i].head)
	}
	if gone < len(b.log.stamps)/2 {
		return
	}
	b.log.forget(gone)
	for i := range b.windows {
		b.windows[i].head -= gone
	}
}

// verdict is which limit makes a page wait the longest at n, and until when; as the ledgers name it.
type verdict struct {
	limit string
	at    int64 // quota.Never when it is not known
}

func (b *bucket) judge(n int64, v *verdict) {
	if b.suspended > max(n, v.at) {
		*v = verdict{quota.Suspended, b.suspended}
	}
	for i := range b.windows {
		w := &b.windows[i]
		w.used(&b.log, n) // moves the window on
		if w.limit.Pace != nil {
			continue
		}
		if at := w.standing(&b.log, b.holds, n).Fits(b.cost, w.most); at > n && at > v.at {
			*v = verdict{w.limit.Name(), at}
		}
	}
}

// judgePaces puts the verdict off to when the lines are where the page needs them.
func (b *bucket) judgePaces(n int64, v *verdict) {
	for i := range b.windows {
		w := &b.windows[i]
		if w.limit.Pace == nil {
			continue
		}
		at := w.limit.PacedAt(w.used(&b.log, n), b.holds, b.cost, moment(n), moment(v.at)).UnixMicro()
		if v.limit == "" {
			v.limit = quota.PaceName
		}
		v.at = max(v.at, at)
	}
}
