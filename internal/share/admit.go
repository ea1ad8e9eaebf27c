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

const (
	// looksBack is over how many of its runs a lane's rate is kept. Fewer would round every run to the
	// ticks; with more, a lane whose share has changed would make up for days of its old one.
	looksBack = 16
	// A lane that was late catches up at three quarters of its interval, and one that ran ahead, while
	// there was enough, waits for five quarters at most.
	catchUp = 3
	waits   = 5
)

// Admit decides whether a lane runs at a tick of it. left says how many units one of Rule.Limits leaves
// scheduled charges now. at is in Unix microseconds, and no earlier than what was charged.
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
	d.Interval = time.Duration(turn.interval) * time.Microsecond
	if turn.interval == never {
		d.Interval = -1
	}
	if turn.class != unknown && turn.interval < never {
		d.Due = moment(turn.due)
	}
	room := b.room(turn, d.Cost, at, at)
	if !turn.isDue(at+b.gap(lane)) || d.Cost > room {
		d.Run, d.Early = false, turn.isDue(at+b.gap(lane)) && d.Cost <= d.Free
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

// room is the units that are free at a moment until, for a run of so many units at the moment at, when
// nobody else charges any between them. A lane that is only in turn keeps to the even line of the calendar
// day too, from nothing at its beginning to all that the lanes may take at the reset, and is one run
// ahead of it at most: what is made up for in the morning would be missing at night.
func (b *Book) room(t turn, cost, at, until int64) int64 {
	units := int64(math.MaxInt64)
	for i := range b.limits {
		l := &b.limits[i]
		w := l.window
		if !w.slides {
			units = min(units, l.left)
			if spent, _ := b.all.since(w.start); !l.enough && t.class == inTurn {
				units = min(units, cost+mulDiv(l.capacity, at-w.begin, w.length)-spent)
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

// turn is when a lane's next run is due.
type turn struct {
	interval int64 // 0: at each tick
	due      int64
	order    int64 // who has the lower one goes first, of one class and priority
	class    class
	priority int64
}

// class says who goes first. The higher ones are not held back by the line of the day either.
type class int

const (
	inTurn  class = iota
	floored       // its floor is all that it gets
	unknown       // it has not run within Memory
)

func (t turn) isDue(at int64) bool { return t.interval < never && t.due <= at }

func (t turn) before(o turn) bool {
	return cmp.Or(cmp.Compare(o.class, t.class), cmp.Compare(o.priority, t.priority), cmp.Compare(t.order, o.order)) < 0
}

// turn finds when the next run of a lane is due. The runs that looksBack reaches are paid for from the first
// of them on: the next is due when that many intervals have passed.
func (b *Book) turn(lane int, at int64) turn {
	t := turn{order: math.MinInt64, due: math.MinInt64, priority: b.rule.Lanes[lane].Priority}
	for i := range b.limits {
		if l := &b.limits[i]; !l.enough {
			t.interval = max(t.interval, l.intervals[lane])
			if l.floored[lane] {
				t.class = floored
			}
		}
	}
	r := &b.lanes[lane]
	if !r.known || r.newest < at-memory {
		t.class = unknown
		return t
	}
	if t.interval == never {
		return t
	}
	if t.interval == 0 {
		t.due, t.order = r.newest, r.newest
		return t
	}
	units, first := r.since(at - min(memory, looksBack*min(t.interval, memory)))
	paid := r.newest + t.interval
	if units > 0 {
		paid = first + min(mulDiv(t.interval, units, b.rule.Cost(lane)), never/4)
	}
	t.order = min(paid, r.newest+t.interval/4*waits)
	t.due = max(t.order, r.newest+t.interval/4*catchUp)
	return t
}

// gap is the average time between two ticks of a lane. A run is not put off to the next tick for less.
func (b *Book) gap(lane int) int64 {
	w := b.limits[0].window
	return w.length / max(w.ticks[lane], 1)
}

// ahead is the units of the runs that go before the lane's, and the first tick of them: of lanes that have
// been due for longer, or go first by their class or priority, and tick before the lane ticks again.
func (b *Book) ahead(lane int, at int64, mine turn) (units, first int64) {
	first = at + b.gap(lane)
	until := first
	for i := range b.lanes {
		if i == lane {
			continue
		}
		if t := b.turn(i, at); t.isDue(at) && t.before(mine) && b.tick(i, at) <= until {
			units += b.rule.Cost(i)
			first = min(first, b.tick(i, at))
		}
	}
	return units, first
}

// tick is the first tick of a lane after a moment.
func (b *Book) tick(lane int, at int64) int64 {
	if b.next[lane] <= at {
		b.next[lane] = b.rule.Lanes[lane].Next(moment(at)).At.UnixMicro()
	}
	return b.next[lane]
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
	case d.Interval < 0:
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
