package quota

import (
	"cmp"
	"slices"
	"time"
)

// This file is the rule: whether a request fits under all limits of its buckets, which limit denies
// it, and when it will fit. bucket.go computes what is used and held at a moment; charge.go,
// settle.go and correct.go make the changes.

// ask is a request for units of one bucket.
type ask struct {
	*Bucket
	units    int64
	limits   []Limit
	manual   bool
	draws    bool // takes held units, which already count
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

// Never is a time that is never reached, in Unix µs.
const Never = int64(1) << 62

// verdict is the clock's time from which a request fits, and the limit that makes it wait longest.
type verdict struct {
	at    int64
	limit string // "" when it fits now
}

// later sets the verdict if the limit makes the request wait longer.
func (v *verdict) later(at int64, limit string) {
	if at > v.at {
		*v = verdict{at, limit}
	}
}

// judge returns the verdict of the enforced or of the observed limits. On a tie it names the first
// in the order of the request, and the suspension of a bucket before its limits. It names a pace
// only if nothing else denies; the Budget computes when the line is high enough.
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
				capacity := l.CapAt(time.UnixMicro(a.n), q.manual, q.draws)
				if l.Pace != nil {
					paced = paced || q.fits(l, a.n, q.units, capacity, q.draws) > a.n
				} else {
					v.later(q.fits(l, from, q.units, capacity, q.draws), l.Name())
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

// lapsing reports whether holds become entries later. A limit that allows a cost at one moment may
// then deny it at a later one.
func (a *Account) lapsing() bool {
	return slices.ContainsFunc(a.Buckets, func(b *Bucket) bool { return b.first < Never })
}

// reachable returns the earliest time of the clock at which a decision's time is n or later, and
// that decision's time. The two differ because a decision comes after the entries of lapsed holds,
// whose stamps may be ahead of the clock.
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
		At:        StampTime(a.Now),
		Units:     make(map[string]int64, len(asks)),
		Remaining: make(map[string]int64, len(asks)),
		Limit:     v.limit,
	}
	if d.Allowed {
		d.At = StampTime(a.n)
	}
	if !fits && v.at < Never {
		d.RetryAt = StampTime(v.at)
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

// remaining returns the minimum that the enforced limits leave at n, with or without the units
// taken; false if there is no such limit.
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

// takes returns how many units fewer a window has left after a charge or a hold at n.
func (q ask) takes(w Window, n int64) (units int64) {
	early := w.Anchored && n < q.State.ResetAt-w.Length.Microseconds() // the clock was set back
	if !early || q.reserves {
		units = q.units
	}
	if q.draws { // the units were held already
		units -= q.units
	}
	return units
}

// tooMany reports whether the estimates in flight, including this one, may be too low by more than
// Slack.
func (q ask) tooMany(n int64) bool {
	if q.tooLow == 0 {
		return false
	}
	held, atMost := q.held(n)
	return atMost-held+q.tooLow > Slack(q.limits)
}

// step is a moment at which holds change what counts: when one expires, or has become an entry.
type step struct {
	at    int64
	held  int64 // units that are no longer held
	entry int64 // units of the entry that the hold becomes, 0 for none
}

// steps returns the steps after from in order of time, if no caller settles the holds. The last
// step is at Never, so that a loop over them covers all the time after from. A hold becomes an
// entry at the entry's stamp: no decision is made between its expiry and that stamp.
func (b *Bucket) steps(from int64) (steps []step) {
	for i := range b.Holds {
		if h := &b.Holds[i]; !h.charges() && isOpen(h, from) && h.Left() > 0 {
			steps = append(steps, step{at: h.Expires, held: h.Left()})
		}
	}
	if b.first < Never {
		for _, l := range b.schedule() {
			if l.at > from {
				steps = append(steps, step{l.at, l.hold.Left(), l.units})
			}
		}
	}
	slices.SortFunc(steps, func(x, y step) int { return cmp.Compare(x.at, y.at) })
	return append(steps, step{at: Never})
}

// fits returns the earliest moment, at or after from, at which further units are within the
// capacity if no caller charges meanwhile. It returns Never if there is none. Held units do not
// count against draws, which use units that are already held.
func (b *Bucket) fits(l Limit, from, units, capacity int64, draws bool) int64 {
	if units > capacity {
		return Never
	}
	room := capacity - units
	held, _ := b.held(from)
	if draws {
		held = 0
	}
	if b.used(l, from)+held <= room {
		return from
	}
	steps := b.steps(from)
	if draws {
		for i := range steps {
			steps[i].held = 0
		}
	}
	if l.Window.IsRestoring() {
		return b.restored(l, from, room, held, steps)
	}
	return b.left(l, from, room, held, steps)
}

// restored implements fits for a restoring window, whose level falls between the steps.
func (b *Bucket) restored(l Limit, from, room, held int64, steps []step) int64 {
	r := l.Window.Restore
	num, den := r.Terms()
	level := b.levelOf(l, from)
	for _, s := range steps {
		end := s.at
		if may := room - held; may >= 0 {
			at := from
			if over := level - min(may, maxLevel/den)*den; over > 0 {
				at += (over + num - 1) / num
			}
			if at < end {
				return at
			}
		}
		level = r.LevelAfter(level, end-from)
		if s.entry > 0 {
			level = r.plus(level, s.entry)
		}
		held, from = held-s.held, end
	}
	return Never
}

// left implements fits for the other windows, which entries leave.
func (b *Bucket) left(l Limit, from, room, held int64, steps []step) int64 {
	w, reset := l.Window, b.State.ResetAt
	after := w.after(from, reset)
	base := b.logBase(after)
	count := held // units that count besides the stored entries
	var departures []step
	leave := func(at, now, units int64) {
		count += units
		departures = append(departures, step{at: max(now, w.departs(at, reset)), held: units})
	}
	if o := b.othersOf(l); o.Units > 0 && o.At > after {
		leave(o.At, from, o.Units)
	}
	if w.Concurrent {
		base = b.newest.Total
		for i := range steps {
			steps[i].entry = 0
		}
	} else {
		for _, l := range b.lapsed(from) {
			if w.departs(l.at, reset) > from {
				leave(l.at, from, l.units)
			}
		}
	}
	for _, s := range steps {
		if s.entry > 0 {
			leave(s.at, s.at, s.entry)
			count -= s.entry
		}
	}
	steps = append(steps, departures...)
	slices.SortFunc(steps, func(x, y step) int { return cmp.Compare(x.at, y.at) })
	used := b.newest.Total - base
	for _, s := range steps {
		end := s.at
		need := used + count - room // units of the stored log that must leave first
		if need <= 0 && from < end {
			return from
		}
		if need > 0 && need <= used && (end == Never || b.logBase(w.after(end-1, reset))-base >= need) {
			stamp, err := b.Log.Reached(base + need)
			b.fail(err)
			if at := max(from, w.departs(stamp, reset)); at < end || b.broken != nil {
				return at
			}
		}
		count += s.entry - s.held
		from = end
	}
	return Never
}

// nextFree returns the clock's time at which the next units of the bucket come free, because an
// entry leaves the window or a hold expires; 0 if there are none. A hold that becomes an entry
// comes free when the entry leaves.
func (a *Account) nextFree(b *Bucket, w Window) int64 {
	held, _ := b.held(a.n)
	taken := b.used(Limit{Window: w}, a.n) + held
	if taken == 0 {
		return 0
	}
	for from := a.n; ; {
		next := b.fits(Limit{Window: w}, from, 1, taken, false)
		if next == Never || b.broken != nil {
			return 0
		}
		clock, n := a.reachable(next)
		if n == next {
			return clock
		}
		from = n
	}
}
