package share

import (
	"math"
	"time"

	"quotabudget/internal/quota"
)

// never is the interval of a lane that gets no run.
const never = math.MaxInt64

// division is one limit's capacity, divided among the lanes.
type division struct {
	limit      quota.Limit
	index      int     // index in Rule.Limits
	window     *window // current window; nil before the first decision
	start, end int64   // the calendar window asked for last

	left     int64 // units left at the last decision
	enough   bool  // enough for every coming tick
	capacity int64 // units the lanes may take in the window
	*cut           // the division of capacity; nil until computed
}

// cut is how a capacity is divided.
type cut struct {
	of        int64
	intervals []int64 // between two runs, in parts of a tick; 0: each tick runs
	floored   []bool  // the lane's share is no more than its floor
	short     bool    // some lane's interval is not 0
}

// window is the time whose ticks are counted, in Unix microseconds. A sliding window counts the
// ticks of the window that begins with the upstream's day.
type window struct {
	begin, end int64 // of the ticks
	start      int64 // start of the calendar window, before begin if the lanes began late
	slides     bool
	until      int64 // end of validity
	length     int64
	ticks      []int64 // number of ticks by lane
	wants      int64   // units of all ticks
	wanted     int64   // Book.past after the last tick
}

// open makes the window that contains now the current one.
func (b *Book) open(d *division) {
	at := b.now
	if w := d.window; w != nil && at < w.until && at >= w.begin {
		return
	}
	w := &window{slides: !d.limit.Window.IsCalendar()}
	if w.slides {
		start, end := b.rule.Reset.Bounds(moment(at))
		w.begin, w.until = start.UnixMicro(), end.UnixMicro()
		w.start, w.end = w.begin, w.begin+d.limit.Window.Length.Microseconds()
	} else {
		w.start, w.end = d.day(at)
		w.until = w.end
		if w.begin = b.firstRun(w.start, at); w.begin == at {
			w.until = at + 1 // until a lane runs, the window starts over each time
		}
	}
	b.count(w)
	d.window, d.cut = w, nil
}

// day returns the calendar day, week or month that contains a moment.
func (d *division) day(at int64) (start, end int64) {
	if at < d.start || at >= d.end {
		start, end := d.limit.Window.Bounds(moment(at))
		d.start, d.end = start.UnixMicro(), end.UnixMicro()
	}
	return d.start, d.end
}

// count counts the ticks of a window.
func (b *Book) count(w *window) {
	w.length, w.wanted = w.end-w.begin, b.past
	for i := range b.rule.Lanes {
		l, cost := &b.rule.Lanes[i], b.rule.Cost(i)
		n := l.Count(before(w.begin), before(w.end))
		w.ticks = append(w.ticks, n)
		w.wants += n * cost
		w.wanted += l.Count(before(b.now), before(w.end)) * cost
	}
}

// firstRun returns when the lanes began to use a day: its start, if any lane ran before the day.
// If no lane has run yet today, the rest of the day is divided.
func (b *Book) firstRun(start, at int64) int64 {
	if len(b.all.at) > 0 && b.all.at[0] < start {
		return start
	}
	if i := b.all.from(start); i < len(b.all.at) {
		at = min(at, b.all.at[i])
	}
	return max(start, at)
}

// before returns the moment just before, so that ticks at micros come after it.
func before(micros int64) time.Time { return moment(micros).Add(-time.Nanosecond) }

// since returns the moment from which charges count at a moment of the window.
func (w *window) since(at int64) int64 {
	if w.slides {
		return at - w.length
	}
	return w.start
}

// divide computes each lane's interval. The capacity excludes what others have charged or hold,
// and any remainder that makes no run.
func (b *Book) divide(d *division, at, left int64) {
	w := d.window
	from := w.since(at)
	others, lanes := b.others.since(from), b.all.since(from)
	capacity := d.limit.Cap(false)
	held := max(0, capacity-left-others-lanes)
	if w.slides { // treat units that leave within a grain as gone
		others = b.others.since(from + grain)
	}
	capacity = max(0, capacity-others-held)
	d.capacity = capacity - capacity%b.unit
	capacity = min(d.capacity, w.wants) // more capacity gives the same division
	if d.cut == nil || d.cut.of != capacity {
		d.cut = b.cut(w, capacity)
		b.changes++
	}
}

// cut divides a capacity of a window.
func (b *Book) cut(w *window, capacity int64) *cut {
	n := len(b.lanes)
	c := &cut{of: capacity, intervals: make([]int64, n), floored: make([]bool, n)}
	claimants, scale := b.claimants(w, capacity)
	for i, units := range MaxMin(capacity*scale, claimants) {
		claim := &claimants[i]
		c.floored[i] = units > 0 && units <= claim.Floor
		switch cost := b.rule.Cost(i); {
		case cost > capacity && w.ticks[i] > 0, units == 0 && claim.Demand > 0:
			c.intervals[i] = never
		case units >= claim.Demand && claim.Demand <= capacity*scale:
		default:
			c.intervals[i] = mulDiv(w.ticks[i]*parts, cost*scale, units)
			if c.intervals[i] > never/8 {
				c.intervals[i] = never
			}
		}
		c.short = c.short || c.intervals[i] > 0
	}
	return c
}

// claimants returns the lanes' claims for MaxMin, scaled so that a share can be a fraction of a
// unit.
func (b *Book) claimants(w *window, capacity int64) (all []Claimant, scale int64) {
	scale = 1 << 20
	if capacity >= 1<<40 {
		scale = 1
	}
	for i, l := range b.rule.Lanes {
		demand := capacity + 1 // any larger demand has the same effect
		switch cost := b.rule.Cost(i); {
		case cost > capacity:
			demand = 0 // its run does not fit
		case cost == 0 || w.ticks[i] <= capacity/cost:
			demand = w.ticks[i] * cost
		}
		floor := min(l.floorOf(w), capacity)
		all = append(all, Claimant{demand * scale, l.Weight, l.Priority, floor * scale})
	}
	return all, scale
}

func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
