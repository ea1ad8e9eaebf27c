package share

import (
	"cmp"
	"math"
)

// looksBack is over how many of its runs a lane's rate is kept, and reachesBack over how long at
// least: charges are known to the grain, and runs to the tick. Less would round every run to them;
// with more, a lane whose share has changed would make up for days of its old one.
const (
	looksBack   = 16
	reachesBack = 144 * grain // a day
)

// parts is how many parts of a tick are counted.
const parts = 1 << 10

// turn is when a lane's next run is due. Its time is the lane's ticks, in parts: a schedule need
// not be spread over the day.
type turn struct {
	interval int64 // between two runs; 0: at each tick
	now      int64
	due      int64
	order    int64 // since when it waits: of one class and priority, the longest goes first
	every    int64 // µs between two ticks
	class    class
	priority int64
	rank     int64 // among lanes that are unknown

	until   int64 // µs; it holds until then,
	changes int64 // as long as Book.changes is this
}

// class says who goes first. The higher ones are not held back by the line of the day either.
type class int

const (
	inTurn  class = iota
	floored       // its floor is all that it gets
	unknown       // it has not run within Memory
)

// wait is how long until the next run is due, and waited how long it has been, in microseconds.
func (t *turn) wait() int64   { return max(0, t.due-t.now) / parts * t.every }
func (t *turn) waited() int64 { return mulDivSigned(t.now-t.order-t.interval, t.every) }

func (t *turn) before(o *turn) bool {
	return cmp.Or(cmp.Compare(o.class, t.class), cmp.Compare(o.priority, t.priority),
		cmp.Compare(t.rank, o.rank), cmp.Compare(o.waited(), t.waited())) < 0
}

// turnOf is when the next run of a lane is due, as of now.
func (b *Book) turnOf(lane int) *turn {
	l := &b.lanes[lane]
	if b.now >= l.turn.until || b.changes != l.turn.changes {
		b.findTurn(lane)
	}
	l.turn.now = l.ticks * parts
	return &l.turn
}

// findTurn finds when the next run of a lane is due. The runs that looksBack reaches are paid for
// from the first of them on: the next is due when that many intervals have passed. One that was
// late catches up at three quarters of its interval, and one that ran ahead, while there was
// enough, waits for a quarter more than one, or a tick.
func (b *Book) findTurn(lane int) {
	l, at := &b.lanes[lane], b.now
	t := turn{every: l.every, priority: b.rule.Lanes[lane].Priority, until: math.MaxInt64,
		changes: b.changes}
	apart := int64(0) // µs between two runs
	for i := range b.limits {
		d := &b.limits[i]
		if d.enough {
			continue
		}
		if d.intervals[lane] >= t.interval {
			t.interval = d.intervals[lane]
			apart = mulDiv(d.window.length, t.interval, max(d.window.ticks[lane], 1)*parts)
		}
		if d.floored[lane] {
			t.class = floored
		}
	}
	switch {
	case t.interval == never:
		t.due, t.order = never, never/2
	case len(l.at) == 0 || l.newest() < at-memory:
		t.class, t.due, t.order, t.until = unknown, math.MinInt64/2, l.ticks*parts, at
		if apart > 0 {
			// Lanes that share less than one run in Memory each take turns by the clock.
			n := int64(len(b.lanes))
			t.rank = (int64(lane) - mulDiv(at%apart, n, apart) + n) % n
		}
	case t.interval == 0:
		t.due, t.order = math.MinInt64/2, b.tickOf(lane, l.newest(), &l.last)*parts
		t.until = l.newest() + memory + 1
	default:
		last := b.tickOf(lane, l.newest(), &l.last) * parts
		reach := min(memory, max(reachesBack, looksBack*min(apart, memory)))
		i := min(l.from(at-reach), len(l.at)-1)
		covered := mulDiv(t.interval, l.total-l.before[i], b.rule.Cost(lane))
		paid := b.tickOf(lane, l.at[i], &l.first)*parts + min(covered, never/4)
		// last may be the length of a grain ago, however often the lane ticks
		t.order = min(paid, last+t.interval+max(t.interval/4, parts, mulDiv(grain, parts, t.every)))
		t.due = max(t.order, last+t.interval/4*3)
		t.until = min(l.newest()+memory+1, l.at[i]+grain+reach)
	}
	l.turn = t
}

// ahead is the units of the runs that go before the lane's, and the first tick of them: of lanes
// that have been due for longer, or go first by their class or priority, and tick before the lane
// ticks again.
func (b *Book) ahead(lane int, mine *turn) (units, first int64) {
	first = b.now + mine.every
	until := first
	for i := range b.lanes {
		if i == lane || b.lanes[i].next > until {
			continue
		}
		// order is ahead of now where the run of a tick to come is charged already
		if t := b.turnOf(i); max(t.due, t.order) <= t.now && t.before(mine) {
			units += b.rule.Cost(i)
			first = min(first, b.lanes[i].next)
		}
	}
	return units, first
}
