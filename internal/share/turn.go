package share

import (
	"cmp"
	"math"
)

// A lane's rate is averaged over averagedRuns of its runs, and at least over minAverageTime. A
// shorter average would be too coarse, because the times of charges are rounded to the grain and
// those of runs to the tick. With a longer one, a lane whose share has changed would catch up on
// days of its old share.
const (
	averagedRuns   = 16
	minAverageTime = 144 * grain // a day
)

// tickParts is the number of parts that a tick is divided into.
const tickParts = 1 << 10

// turn is when a lane's next run is due. Times are counted in the lane's ticks, in parts, because
// a schedule need not be spread over the day.
type turn struct {
	interval int64 // between two runs; 0: at each tick
	now      int64
	due      int64
	order    int64 // start of its wait; in one class and priority the longest wait goes first
	every    int64 // µs between two ticks
	class    class
	priority int64
	rank     int64 // order among lanes of class unknown

	until   int64 // µs; the turn is valid until then
	changes int64 // the turn is valid while Book.changes has this value
}

// class is the order of precedence. Only inTurn is held to the even line of the day.
type class int

const (
	inTurn  class = iota
	floored       // the lane gets no more than its floor
	unknown       // the lane has not run within Memory
)

// waited returns how long the run has been due, in microseconds.
func (t *turn) waited() int64 {
	return int64(float64(t.now-t.order-t.interval) / tickParts * float64(t.every))
}

func (t *turn) before(o *turn) bool {
	return cmp.Or(cmp.Compare(o.class, t.class), cmp.Compare(o.priority, t.priority),
		cmp.Compare(t.rank, o.rank), cmp.Compare(o.waited(), t.waited())) < 0
}

// turnOf returns the lane's turn at Book.now.
func (b *Book) turnOf(lane int) *turn {
	l := &b.lanes[lane]
	if b.now >= l.turn.until || b.changes != l.turn.changes {
		b.findTurn(lane)
	}
	l.turn.now = l.ticks * tickParts
	return &l.turn
}

// findTurn computes when a lane's next run is due. Each of the averaged runs covers one interval,
// beginning at the first of them: the next run is due when all these intervals have passed. A late
// lane may run again after three quarters of an interval. A lane that ran ahead while there were
// enough units waits at most a quarter of an interval, or a tick, longer than an interval.
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
			apart = mulDiv(d.window.length, t.interval, max(d.window.ticks[lane], 1)*tickParts)
		}
		if d.floored[lane] {
			t.class = floored
		}
	}
	switch {
	case t.interval == never:
		t.due, t.order = never, never/2
	case len(l.at) == 0 || l.newest() < at-memory:
		t.class, t.due, t.order, t.until = unknown, math.MinInt64/2, l.ticks*tickParts, at
		if apart > 0 {
			// Lanes that share less than one run each within Memory take turns by the clock.
			n := int64(len(b.lanes))
			t.rank = (int64(lane) - mulDiv(at%apart, n, apart) + n) % n
		}
	case t.interval == 0:
		t.due, t.order = math.MinInt64/2, b.tickOf(lane, l.newest())*tickParts
		t.until = l.newest() + memory + 1
	default:
		last := b.tickOf(lane, l.newest()) * tickParts
		reach := min(memory, max(minAverageTime, averagedRuns*min(apart, memory)))
		i := min(l.from(at-reach), len(l.at)-1)
		covered := mulDiv(t.interval, l.total-l.before[i], b.lanes[lane].cost)
		paid := b.tickOf(lane, l.at[i])*tickParts + min(covered, never/4)
		// last may be up to a grain too early, whatever the lane's interval
		wait := max(t.interval/4, tickParts, mulDiv(grain, tickParts, t.every))
		t.order = min(paid, last+t.interval+wait)
		t.due = max(t.order, last+t.interval/4*3)
		t.until = min(l.newest()+memory+1, l.at[i]+grain+reach)
	}
	l.turn = t
}

// ahead returns the units of the runs that go before this lane's, and the first tick of those
// lanes: lanes that tick before this lane's next tick, and have been due longer or have a higher
// class or priority.
func (b *Book) ahead(lane int, mine *turn) (units, first int64) {
	first = b.now + mine.every
	until := first
	for i := range b.lanes {
		if i == lane || b.lanes[i].next > until {
			continue
		}
		// t.order is after now if the run of a coming tick is already charged
		if t := b.turnOf(i); max(t.due, t.order) <= t.now && t.before(mine) {
			units += b.lanes[i].cost
			first = min(first, b.lanes[i].next)
		}
	}
	return units, first
}
