package share

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Decision says whether a lane runs at a tick, and why.
type Decision struct {
	Run   bool
	Short bool // false: enough is left for every tick to come, and nothing is shared
	Lane  *Lane

	Interval time.Duration // between two runs of the lane; 0: it gets all that it wants; negative: none
	Due      time.Time     // when its next run is due; zero: at once
	Free     int64         // units that are left now
	Cost     int64         // units of its run
	Ahead    int64         // units of the runs of other lanes that go first
	Early    bool          // the lanes together have used what the day has for them until now
}

// looksBack is over how many of its runs a lane's rate is kept, and reachesBack over how long at
// least: charges are known to the grain, and runs to the tick. Less would round every run to them;
// with more, a lane whose share has changed would make up for days of its old one.
const (
	looksBack   = 16
	reachesBack = 144 * grain // a day
)

// Soon is what counts as free already: the charges of a run are a little apart, and so are those
// that leave a sliding window a day later.
const Soon = time.Second

// Admit decides whether a lane runs at a tick of it. left says how many units one of Rule.Limits
// leaves scheduled charges Soon. at is in Unix microseconds, and no earlier than what was charged.
//
// A tick that was begun before and is only resumed has been decided: do not ask again.
func (b *Book) Admit(lane int, at int64, left func(limit int) int64) Decision {
	d := Decision{Run: true, Lane: &b.rule.Lanes[lane], Free: math.MaxInt64, Cost: b.rule.Cost(lane)}
	for i := range b.limits {
		l := &b.limits[i]
		units := left(l.index)
		d.Free = min(d.Free, units)
		d.Short = b.short(l, at, units) || d.Short
	}
	if !d.Short || d.Cost == 0 {
		return d
	}
	turn := b.turn(lane, at)
	d.Interval = time.Duration(turn.interval) * time.Microsecond / parts * time.Duration(b.every[lane])
	if turn.interval == never {
		d.Interval = -1
	} else if turn.class != unknown {
		d.Due = moment(at + turn.wait())
	}
	isDue := turn.due <= turn.now+parts // or will be before the next tick
	room := b.room(turn, d.Cost, at, at)
	if !isDue || d.Cost > room {
		d.Run, d.Early = false, isDue && d.Cost <= d.Free
		return d
	}
	if room < b.costs { // not enough for one run of each
		units, tick := b.ahead(lane, at, turn)
		if d.Cost+units > b.room(turn, d.Cost, at, tick) {
			d.Run, d.Ahead = false, units
		}
	}
	return d
}

// short says whether a limit leaves too little for all ticks to come. It divides what there is.
func (b *Book) short(l *division, at, left int64) bool {
	l.left = left
	if l.enough = b.plenty(l, at, left); l.enough {
		return false
	}
	b.open(l, at)
	if l.enough = !l.window.slides && l.window.wanted(at) <= left; l.enough {
		return false
	}
	b.divide(l, at, left)
	for _, interval := range l.intervals {
		if interval > 0 {
			return true
		}
	}
	return false
}

// plenty reports whether enough is left for more ticks than can come until the reset, or in one
// length of a sliding window. Nobody has to count them then.
func (b *Book) plenty(l *division, at, left int64) bool {
	ahead := l.limit.Window.Length.Microseconds()
	if l.limit.Window.IsCalendar() {
		if w := l.window; w != nil && at >= w.start && at < w.end {
			ahead = w.end - at
		} else {
			_, end := l.limit.Window.Bounds(moment(at))
			ahead = end.UnixMicro() - at
		}
	}
	for i := range b.lanes {
		if cost := b.rule.Cost(i); cost > 0 {
			if left -= min(mulDiv(ahead/b.every[i]+2, cost, 1), never/4); left < 0 {
				return false
			}
		}
	}
	return true
}

// room is the units that are free at a moment until, for a run of so many units at the moment at,
// when nobody else charges any between them. A lane that is only in turn keeps to the even line of
// the calendar day too, from nothing at the first tick to all that the lanes may take after the
// last, and is one run ahead of it at most: what is made up for in the morning would be missing at
// night.
func (b *Book) room(t turn, cost, at, until int64) int64 {
	units := int64(math.MaxInt64)
	for i := range b.limits {
		l := &b.limits[i]
		w := l.window
		if l.enough {
			units = min(units, l.left)
			continue
		}
		if !w.slides {
			units = min(units, l.left)
			if spent, _ := b.all.since(w.start); t.class == inTurn && t.interval >= parts*3/2 {
				units = min(units, max(cost, b.costs/2)+mulDiv(l.capacity, w.wants-w.wanted(at), max(w.wants, 1))-spent)
			}
			continue
		}
		units = min(units, l.left+b.leaving(floorGrain(at-w.length)+grain, until-w.length+grain))
	}
	return units
}

// leaving is the units of whole grains between two moments.
func (b *Book) leaving(from, to int64) (units int64) {
	if floorGrain(to) <= from {
		return 0
	}
	for _, r := range [...]*record{&b.all, &b.others} {
		more, _ := r.since(from)
		less, _ := r.since(to)
		units += more - less
	}
	return units
}

// parts is how many parts of a tick are counted.
const parts = 1 << 10

// turn is when a lane's next run is due. Its time is the lane's ticks, in parts: a schedule need
// not be spread over the day.
type turn struct {
	interval int64 // between two runs; 0: at each tick
	now      int64
	due      int64
	order    int64 // since when it has been waiting: who has waited longest goes first, of one class and priority
	every    int64 // µs between two ticks
	class    class
	priority int64
	rank     int64 // among lanes that are unknown
}

// class says who goes first. The higher ones are not held back by the line of the day either.
type class int

const (
	inTurn  class = iota
	floored       // its floor is all that it gets
	unknown       // it has not run within Memory
)

// wait is how long until the next run is due, and waited how long it has been, in microseconds.
func (t turn) wait() int64   { return max(0, t.due-t.now) / parts * t.every }
func (t turn) waited() int64 { return mulDivSigned(t.now-t.order-t.interval, t.every) }

func (t turn) before(o turn) bool {
	return cmp.Or(cmp.Compare(o.class, t.class), cmp.Compare(o.priority, t.priority),
		cmp.Compare(t.rank, o.rank), cmp.Compare(o.waited(), t.waited())) < 0
}

// turn finds when the next run of a lane is due. The runs that looksBack reaches are paid for from
// the first of them on: the next is due when that many intervals have passed. One that was late
// catches up at three quarters of its interval, and one that ran ahead, while there was enough,
// waits for a quarter more than one, or a tick.
func (b *Book) turn(lane int, at int64) turn {
	t := turn{now: b.ticks(lane, at) * parts, every: b.every[lane], priority: b.rule.Lanes[lane].Priority}
	apart := int64(0) // µs between two runs
	for i := range b.limits {
		l := &b.limits[i]
		if l.enough {
			continue
		}
		if l.intervals[lane] >= t.interval {
			t.interval = l.intervals[lane]
			apart = mulDiv(l.window.length, t.interval, max(l.window.ticks[lane], 1)*parts)
		}
		if l.floored[lane] {
			t.class = floored
		}
	}
	r := &b.lanes[lane]
	switch {
	case t.interval == never:
		t.due, t.order = never, never/2
	case len(r.at) == 0 || r.newest() < at-memory:
		t.class, t.order = unknown, t.now
		if apart > 0 && t.interval < never {
			// Lanes that share less than one run in Memory each take turns by the clock.
			n := int64(len(b.lanes))
			t.rank = (int64(lane) - mulDiv(at%apart, n, apart) + n) % n
		}
	case t.interval == 0:
		t.order = r.ticked[len(r.at)-1] * parts
	default:
		last := r.ticked[len(r.at)-1] * parts
		reach := min(memory, max(reachesBack, looksBack*min(apart, memory)))
		i := min(r.from(at-reach), len(r.at)-1)
		paid := r.ticked[i]*parts + min(mulDiv(t.interval, r.total-r.before[i], b.rule.Cost(lane)), never/4)
		// last may be the length of a grain ago, however often the lane ticks
		t.order = min(paid, last+t.interval+max(t.interval/4, parts, mulDiv(grain, parts, t.every)))
		t.due = max(t.order, last+t.interval/4*3)
	}
	return t
}

// ahead is the units of the runs that go before the lane's, and the first tick of them: of lanes
// that have been due for longer, or go first by their class or priority, and tick before the lane
// ticks again.
func (b *Book) ahead(lane int, at int64, mine turn) (units, first int64) {
	first = at + b.every[lane]
	until := first
	for i := range b.lanes {
		if i == lane || b.resting(i, at) {
			continue
		}
		if t := b.turn(i, at); t.due <= t.now && t.before(mine) && b.next[i].at <= until {
			units += b.rule.Cost(i)
			first = min(first, b.next[i].at)
		}
	}
	return units, first
}

// resting reports whether a lane ran so lately that its next run cannot be due, whatever it is
// owed.
func (b *Book) resting(lane int, at int64) bool {
	r := &b.lanes[lane]
	if len(r.at) == 0 || r.newest() < at-memory {
		return false
	}
	interval := int64(0)
	for i := range b.limits {
		if l := &b.limits[i]; !l.enough {
			interval = max(interval, l.intervals[lane])
		}
	}
	return (b.ticks(lane, at)-r.ticked[len(r.at)-1])*parts < interval/4*3
}

// String is the reason in words.
func (d Decision) String() string {
	name, every := d.Lane.Region, d.Interval.Round(time.Second)
	switch {
	case !d.Short:
		return fmt.Sprintf("%s runs: enough is left for every tick to come", name)
	case d.Run && d.Interval == 0:
		return fmt.Sprintf("%s runs: it gets all that it wants (%s)", name, d.claim())
	case d.Run && d.Due.IsZero():
		return fmt.Sprintf("%s runs: it has not run for days, or ever", name)
	case d.Run:
		return fmt.Sprintf("%s runs: a run every %s, this one due at %s (%s)", name, every, d.due(), d.claim())
	case d.Interval < 0 && d.Cost <= d.Free:
		return fmt.Sprintf("%s is left out: the others need all units (%s)", name, d.claim())
	case d.Ahead > 0:
		return fmt.Sprintf("%s is left out: %d units are left, and lanes that have waited longer need %d of them (%s)",
			name, d.Free, d.Ahead, d.claim())
	case d.Early:
		return fmt.Sprintf("%s is left out: the lanes together have used their units of the day until now (%s)",
			name, d.claim())
	case d.Cost > d.Free:
		return fmt.Sprintf("%s is left out: a run takes %d units, and %d are left now", name, d.Cost, d.Free)
	}
	return fmt.Sprintf("%s is left out: a run every %s, the next due at %s (%s)", name, every, d.due(), d.claim())
}

func (d Decision) due() string { return d.Due.UTC().Format("15:04 MST") }

// claim is what its share follows from.
func (d Decision) claim() string {
	s := fmt.Sprintf("weight %d", d.Lane.Weight)
	if d.Lane.Priority != 0 {
		s += fmt.Sprintf(", priority %d", d.Lane.Priority)
	}
	if d.Lane.Floor != 0 {
		s += fmt.Sprintf(", floor %d", d.Lane.Floor)
	}
	return s
}
