package share

import (
	"cmp"
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// never is an interval without an end: nothing is left for the lane.
const never = math.MaxInt64

// division is how one limit is divided among the lanes.
type division struct {
	limit  quota.Limit
	index  int     // in Rule.Limits
	window *window // nil before the first decision

	left      int64   // units, at the last decision
	capacity  int64   // what the lanes may take of the window, as it is divided; -1 before
	enough    bool    // for every tick to come of a calendar day
	intervals []int64 // between two runs of each lane; 0: it gets all that it wants
	floored   []bool  // its share is no more than its floor
}

// window is the stretch of time whose ticks are counted. A window that slides takes its ticks from
// the one that begins with the upstream's day. Times are Unix microseconds.
type window struct {
	begin, end int64 // of the ticks
	start      int64 // of the calendar day: before begin on a day that was begun late
	slides     bool
	until      int64 // another window is in force from then on
	length     int64
	ticks      []int64 // how many each lane has
	wants      int64   // units, of all ticks
	day        *calendar
}

// calendar is the ticks of a whole calendar day. It does not change.
type calendar struct {
	start, end int64
	ticks      [][]int64 // of each lane
	wants      []want    // the last first
}

// want is a tick, and what all from it on want in units.
type want struct{ at, units int64 }

// open makes the window that holds at the one in force.
func (b *Book) open(d *division, at int64) {
	if w := d.window; w != nil && at < w.until && at >= w.begin {
		return
	}
	w := &window{slides: !d.limit.Window.IsCalendar()}
	if w.slides {
		start, end := b.rule.Reset.Bounds(moment(at))
		w.begin, w.until = start.UnixMicro(), end.UnixMicro()
		w.start, w.end = w.begin, w.begin+d.limit.Window.Length.Microseconds()
		for i := range b.rule.Lanes {
			w.ticks = append(w.ticks, b.rule.Lanes[i].Count(before(w.begin), before(w.end)))
		}
	} else {
		if d.window != nil && at >= d.window.start && at < d.window.end {
			w.day = d.window.day
		} else {
			w.day = b.calendar(d.limit.Window, at)
		}
		w.start, w.end, w.until = w.day.start, w.day.end, w.day.end
		if w.begin = b.firstRun(w.start, at); w.begin == at {
			w.until = at + 1 // as long as no lane has run, the day begins anew
		}
		for _, ticks := range w.day.ticks {
			n, _ := slices.BinarySearch(ticks, w.begin)
			w.ticks = append(w.ticks, int64(len(ticks)-n))
		}
	}
	w.length = w.end - w.begin
	for i, n := range w.ticks {
		w.wants += n * b.rule.Cost(i)
	}
	d.window, d.capacity = w, -1
}

// firstRun is when the lanes began to use a day: at its start, if any ran before it. A day of which
// nobody ran in the morning is divided over the rest of it.
func (b *Book) firstRun(start, at int64) int64 {
	if len(b.all.at) > 0 && b.all.at[0] < start {
		return start
	}
	_, first := b.all.since(start)
	return max(start, min(first, at))
}

// calendar lists the ticks of the calendar day that holds at.
func (b *Book) calendar(w quota.Window, at int64) *calendar {
	start, end := w.Bounds(moment(at))
	c := &calendar{start: start.UnixMicro(), end: end.UnixMicro(), ticks: make([][]int64, len(b.lanes))}
	for i := range b.rule.Lanes {
		cost := b.rule.Cost(i)
		for t := range b.rule.Lanes[i].Ticks(before(c.start), before(c.end)) {
			at := t.At.UnixMicro()
			c.ticks[i] = append(c.ticks[i], at)
			c.wants = append(c.wants, want{at, cost})
		}
	}
	slices.SortFunc(c.wants, func(x, y want) int { return cmp.Compare(y.at, x.at) })
	for i := 1; i < len(c.wants); i++ {
		c.wants[i].units += c.wants[i-1].units
	}
	return c
}

// before is just before a moment: ticks from it on come after.
func before(micros int64) time.Time { return moment(micros).Add(-time.Nanosecond) }

// wanted is what all ticks of a calendar day from at on want.
func (w *window) wanted(at int64) int64 {
	n, _ := slices.BinarySearchFunc(w.day.wants, at, func(x want, at int64) int {
		if x.at >= at {
			return -1
		}
		return 1
	})
	if n == 0 {
		return 0
	}
	return w.day.wants[n-1].units
}

// since is from when on charges count at a moment of the window.
func (w *window) since(at int64) int64 {
	if w.slides {
		return at - w.length
	}
	return w.start
}

// divide finds the interval of each lane. What others have charged in the window, or hold, is not
// for the lanes, nor is what no run can be made of.
func (b *Book) divide(d *division, at, left int64) {
	from := d.window.since(at)
	others, _ := b.others.since(from)
	lanes, _ := b.all.since(from)
	capacity := d.limit.Cap(false)
	held := max(0, capacity-left-others-lanes)
	if d.window.slides { // what leaves it within a grain has left it
		others, _ = b.others.since(from + grain)
	}
	capacity = max(0, capacity-others-held)
	capacity -= capacity % b.unit
	plenty := capacity >= d.window.wants
	if capacity == d.capacity || plenty && d.capacity >= d.window.wants {
		d.capacity = capacity
		return
	}
	d.capacity = capacity
	d.intervals, d.floored = make([]int64, len(b.lanes)), make([]bool, len(b.lanes))
	claimants, scale := b.claimants(d.window, capacity)
	for i, units := range MaxMin(capacity*scale, claimants) {
		d.floored[i] = units > 0 && units <= claimants[i].Floor
		switch c := claimants[i]; {
		case b.rule.Cost(i) > capacity && d.window.ticks[i] > 0:
			d.intervals[i] = never
		case units >= c.Demand && c.Demand <= capacity*scale:
		case units == 0:
			d.intervals[i] = never
		default:
			d.intervals[i] = mulDiv(d.window.ticks[i]*parts, b.rule.Cost(i)*scale, units)
			if d.intervals[i] > never/8 {
				d.intervals[i] = never
			}
		}
	}
}

// claimants are the lanes as MaxMin sees them, in parts of a unit: a share need not be whole units.
func (b *Book) claimants(w *window, capacity int64) (all []Claimant, scale int64) {
	scale = 1 << 20
	if capacity >= 1<<40 {
		scale = 1
	}
	for i, l := range b.rule.Lanes {
		demand := capacity + 1 // as good as any demand above it
		switch cost := b.rule.Cost(i); {
		case cost > capacity:
			demand = 0 // no run of it fits
		case cost == 0 || w.ticks[i] <= capacity/cost:
			demand = w.ticks[i] * cost
		}
		floor := min(max(l.Floor, 0), capacity)
		all = append(all, Claimant{Demand: demand * scale, Weight: l.Weight, Priority: l.Priority, Floor: floor * scale})
	}
	return all, scale
}

func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
