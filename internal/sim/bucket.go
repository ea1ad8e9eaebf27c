package sim

import (
	"cmp"
	"math"
	"slices"

	"quotabudget/internal/quota"
)

// bucket is one bucket that pages are charged to.
type bucket struct {
	name      string
	costs     []int64 // by lane: what must be left for a page
	took      []took
	log       log
	windows   []window         // limits, then throttles, then paces
	own       []ownPace        // of lanes with separate paces
	holds     []quota.Expiring // earliest expiry first
	lapses    []int64          // units of the entries they become on expiry; -1 for none
	held      int64
	suspended int64 // end of the suspension
	moved     int64 // the current moment
}

// took is what earlier runs of a lane used. With runs 0, each run takes its price. Each coming
// run takes the units that keep the sum closest to the mean.
type took struct{ units, runs, rest int64 }

func (t *took) next() int64 {
	sum := t.rest + t.units
	t.rest = sum % t.runs
	return sum / t.runs
}

// ownPace is the pace of one lane.
type ownPace struct {
	lane int
	window
}

func newBucket(s *Scenario, name string) bucket {
	b := bucket{name: name, suspended: math.MinInt64, moved: math.MinInt64}
	for i := range s.Lanes {
		l := &s.Lanes[i]
		b.costs = append(b.costs, quota.UnitsOf(l.PriceOr(s.Price))[name])
		b.took = append(b.took, took{units: quota.UnitsOf(l.Took)[name], runs: l.Runs})
	}
	b.log.newest = math.MinInt64
	var known Standing
	for _, of := range s.Before {
		if of.Bucket == b.name {
			known = of
		}
	}
	for i, l := range slices.Concat(s.Limits, s.Throttles, s.Paces) {
		if l.Bucket == b.name && !l.Window.Concurrent {
			b.windows = append(b.windows, newWindow(l, i >= len(s.Limits), known.ResetAt))
		}
	}
	for i, lane := range s.Lanes {
		if lane.Own == nil {
			continue
		}
		for _, l := range *lane.Own {
			if l.Bucket == b.name {
				b.own = append(b.own, ownPace{i, newWindow(l, true, known.ResetAt)})
			}
		}
	}
	b.begin(known)
	return b
}

func (b *bucket) begin(s Standing) {
	for _, e := range s.Spent {
		b.write(e.At.UnixMicro(), e.Units)
	}
	reservations := slices.SortedFunc(slices.Values(s.Reservations),
		func(x, y quota.Reservation) int {
			return cmp.Or(x.ExpiresAt.Compare(y.ExpiresAt), cmp.Compare(x.ID, y.ID))
		})
	for _, r := range reservations {
		b.holds = append(b.holds, quota.Expiring{Units: r.Left, ExpiresAt: r.ExpiresAt.UnixMicro()})
		b.held += r.Left
		lapses := int64(-1)
		switch {
		case r.Lapse != quota.LapseCharge:
		case r.Left == 0:
			lapses = 0
		default:
			lapses = max(r.Left, r.Most-r.Drawn)
		}
		b.lapses = append(b.lapses, lapses)
	}
	if !s.SuspendedUntil.IsZero() {
		b.suspended = s.SuspendedUntil.UnixMicro()
	}
}

// copyOf makes b an independent copy, and reuses its memory.
func (b *bucket) copyOf(from *bucket) {
	log, windows, own, took := b.log, b.windows, b.own, b.took
	*b = *from
	b.log.stamps = append(log.stamps[:0], from.log.stamps...)
	b.log.before = append(log.before[:0], from.log.before...)
	b.windows = append(windows[:0], from.windows...)
	b.own = append(own[:0], from.own...)
	b.took = append(took[:0], from.took...)
}

// next moves to a time, or to just after the newest entry, as a ledger stamps. Reservations that
// lapse then may become entries.
func (b *bucket) next(at int64) int64 {
	for {
		n := max(at, b.log.newest+1)
		if b.move(n); b.log.newest < n {
			return n
		}
	}
}

// move moves to n: windows move, and reservations lapse.
func (b *bucket) move(n int64) {
	if n == b.moved {
		return
	}
	b.moved = n
	for len(b.holds) > 0 && b.holds[0].ExpiresAt <= n {
		h, lapses := b.holds[0], b.lapses[0]
		b.holds, b.lapses, b.held = b.holds[1:], b.lapses[1:], b.held-h.Units
		if lapses > 0 {
			b.write(max(h.ExpiresAt, b.log.newest+1), lapses)
		}
	}
	for i := range b.windows {
		b.windows[i].move(&b.log, n)
	}
	for i := range b.own {
		b.own[i].move(&b.log, n)
	}
}

// still reports whether until n nothing leaves or lapses and no window begins.
func (b *bucket) still(n int64) bool {
	if len(b.holds) > 0 && b.holds[0].ExpiresAt <= n {
		return false
	}
	for i := range b.windows {
		if !b.windows[i].still(&b.log, n) {
			return false
		}
	}
	for i := range b.own {
		if !b.own[i].still(&b.log, n) {
			return false
		}
	}
	return true
}

// fits reports whether a lane may be charged pages at n, the current moment.
func (b *bucket) fits(n, pages int64, by charger) bool {
	units := pages * b.costs[by.lane]
	if units == 0 {
		return true
	}
	if n < b.suspended {
		return false
	}
	for i := range b.windows {
		w := &b.windows[i]
		if (by.unpaced || by.own) && w.limit.Pace != nil {
			continue
		}
		if w.used+b.held+units > w.allows(n) {
			return false
		}
	}
	for i := range b.own {
		w := &b.own[i]
		if w.lane == by.lane && !by.unpaced && w.used+b.held+units > w.allows(n) {
			return false
		}
	}
	return true
}

// charger is the lane to charge, and whether paces hold it back.
type charger struct {
	lane    int
	own     bool // use the lane's paces instead of the common ones
	unpaced bool
}

// takes reports whether a lane uses the bucket.
func (b *bucket) takes(lane int) bool { return b.costs[lane] > 0 || b.took[lane].units > 0 }

// chargeLane charges pages of a lane, and returns the units.
func (b *bucket) chargeLane(n, pages int64, lane int) (units int64) {
	t := &b.took[lane]
	if t.runs == 0 {
		b.charge(n, pages, b.costs[lane])
		return pages * b.costs[lane]
	}
	for i := range pages {
		one := t.next()
		b.charge(n+i, 1, one)
		units += one
	}
	return units
}

// charge writes an entry of the given units for each page, a microsecond apart.
func (b *bucket) charge(n, pages, units int64) {
	if b.log.full() {
		b.trim()
	}
	for i := range pages {
		b.write(n+i, units)
	}
	b.see(n + pages - 1)
}

// write writes an entry.
func (b *bucket) write(at, units int64) {
	b.log.add(at, units)
	for i := range b.windows {
		b.windows[i].take(at, units)
	}
	for i := range b.own {
		b.own[i].take(at, units)
	}
}

// see updates the peaks at n.
func (b *bucket) see(n int64) {
	for i := range b.windows {
		w := &b.windows[i]
		w.peak.See(w.used+b.held, n, w.allows(n))
	}
}

// trim drops entries that no window needs, if they are many, or else makes room.
func (b *bucket) trim() {
	gone := len(b.log.stamps)
	for i := range b.windows {
		gone = min(gone, b.windows[i].head)
	}
	for i := range b.own {
		gone = min(gone, b.own[i].head)
	}
	if gone < len(b.log.stamps)/2 {
		b.log.grow()
		return
	}
	b.log.forget(gone)
	for i := range b.windows {
		b.windows[i].head -= gone
	}
	for i := range b.own {
		b.own[i].head -= gone
	}
}

// verdict is the limit that makes a page wait the longest at n, and until when, named as by the
// ledgers.
type verdict struct {
	limit string
	at    int64 // quota.Never if not known
}

func (b *bucket) judge(n int64, by charger, v *verdict) {
	if b.costs[by.lane] == 0 {
		return
	}
	if b.suspended > max(n, v.at) {
		*v = verdict{quota.Suspended, b.suspended}
	}
	for i := range b.windows {
		w := &b.windows[i]
		if w.limit.Pace != nil {
			continue
		}
		if at := w.standing(b, n).Fits(b.costs[by.lane], w.most); at > n && at > v.at {
			*v = verdict{w.limit.Name(), at}
		}
	}
}

// judgePaces extends the verdict to when the pace lines allow the page.
func (b *bucket) judgePaces(n int64, by charger, v *verdict) {
	if b.costs[by.lane] == 0 {
		return
	}
	for i := range b.windows {
		if w := &b.windows[i]; w.limit.Pace != nil && !by.own {
			b.judgePace(n, by, w, v)
		}
	}
	for i := range b.own {
		if b.own[i].lane == by.lane {
			b.judgePace(n, by, &b.own[i].window, v)
		}
	}
}

func (b *bucket) judgePace(n int64, by charger, w *window, v *verdict) {
	units := b.costs[by.lane]
	at := w.limit.PacedAt(w.used, b.holds, units, moment(n), moment(v.at)).UnixMicro()
	if v.limit == "" {
		v.limit = quota.PaceName
	}
	v.at = max(v.at, at)
}
