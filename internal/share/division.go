package share

import (
	"math"
	"time"

	"quotabudget/internal/quota"
)

// never is an interval without an end: nothing is left for the lane.
const never = math.MaxInt64

// division is how one limit is divided among the lanes.
type division struct {
	limit   quota.Limit
	index   int               // in Rule.Limits
	window  *window           // in force; nil before the first decision
	windows map[int64]*window // that were, by their begin; of all forks

	start, end int64 // of the calendar window that was asked for last

	others, lanes, staying mark    // what was charged in the window
	resting                [2]mark // and what of it will be there after the next grain

	left     int64 // units, at the last decision
	held     int64 // and those that were set aside
	spare    int64 // that Others may take without changing the cut
	enough   bool  // for every tick to come
	capacity int64 // what the lanes may take of the window
	*cut           // of it; nil before the window is divided
}

// cut is what becomes of a capacity.
type cut struct {
	of        int64
	intervals []int64 // between two runs of each lane; 0: it gets all that it wants
	floored   []bool  // its share is no more than its floor
	short     bool    // some lane has an interval
}

// window is the time whose ticks are counted. One that slides takes its ticks from the window that
// begins with the upstream's day. Times are Unix microseconds.
type window struct {
	begin, end int64 // of the ticks
	start      int64 // of the calendar day: before begin on a day that was begun late
	slides     bool
	until      int64 // another window is in force from then on
	length     int64
	ticks      []int64        // how many each lane has
	wants      int64          // units, of all ticks
	wanted     int64          // Book.past when all ticks have come
	cuts       map[int64]*cut // that were made, by capacity
}

// mostCuts is how many cuts a window remembers, and mostWindows how many windows a division does.
const (
	mostCuts    = 1 << 12
	mostWindows = 1 << 6
)

// open makes the window that holds now the one in force.
func (b *Book) open(d *division) {
	at := b.now
	if w := d.window; w != nil && at < w.until && at >= w.begin {
		return
	}
	w := window{slides: !d.limit.Window.IsCalendar()}
	if w.slides {
		start, end := b.rule.Reset.Bounds(moment(at))
		w.begin, w.until = start.UnixMicro(), end.UnixMicro()
		w.start, w.end = w.begin, w.begin+d.limit.Window.Length.Microseconds()
	} else {
		w.start, w.end = d.day(at)
		w.until = w.end
		if w.begin = b.firstRun(w.start, at); w.begin == at {
			w.until = at + 1 // as long as no lane has run, the day begins again
		}
	}
	known := d.windows[w.begin]
	if known == nil || known.until != w.until {
		if len(d.windows) == mostWindows {
			clear(d.windows)
		}
		known = &w
		b.count(known)
		d.windows[w.begin] = known
	}
	d.window, d.cut = known, nil
}

// day is the calendar day, week or month that holds a moment.
func (d *division) day(at int64) (start, end int64) {
	if at < d.start || at >= d.end {
		start, end := d.limit.Window.Bounds(moment(at))
		d.start, d.end = start.UnixMicro(), end.UnixMicro()
	}
	return d.start, d.end
}

// count counts the ticks of a window.
func (b *Book) count(w *window) {
	w.length, w.wanted, w.cuts = w.end-w.begin, b.past, make(map[int64]*cut)
	for i := range b.rule.Lanes {
		l, cost := &b.rule.Lanes[i], b.rule.Cost(i)
		n := l.Count(before(w.begin), before(w.end))
		w.ticks = append(w.ticks, n)
		w.wants += n * cost
		w.wanted += l.Count(before(b.now), before(w.end)) * cost
	}
}

// firstRun is when the lanes began to use a day: at its start, if any ran before it. A day of which
// nobody ran in the morning is divided over the rest of it.
func (b *Book) firstRun(start, at int64) int64 {
	if len(b.all.at) > 0 && b.all.at[0] < start {
		return start
	}
	if i := b.all.from(start); i < len(b.all.at) {
		at = min(at, b.all.at[i])
	}
	return max(start, at)
}

// before is just before a moment: ticks from it on come after.
func before(micros int64) time.Time { return moment(micros).Add(-time.Nanosecond) }

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
	w := d.window
	from := w.since(at)
	others, lanes := b.others.since(from, &d.others), b.all.since(from, &d.lanes)
	capacity := d.limit.Cap(false)
	d.held = max(0, capacity-left-others-lanes)
	if w.slides { // what leaves it within a grain has left it
		others = b.others.since(from+grain, &d.staying)
	}
	capacity = max(0, capacity-others-d.held)
	d.capacity = capacity - capacity%b.unit
	spare := capacity
	capacity = min(d.capacity, w.wants) // more than that divides alike
	d.spare = spare - capacity
	if d.cut != nil && d.cut.of == capacity {
		return
	}
	if d.cut = w.cuts[capacity]; d.cut == nil {
		if len(w.cuts) == mostCuts {
			clear(w.cuts)
		}
		d.cut = b.cut(w, capacity)
		w.cuts[capacity] = d.cut
	}
	b.changes++
}

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
		floor := min(l.floorOf(w), capacity)
		all = append(all, Claimant{demand * scale, l.Weight, l.Priority, floor * scale})
	}
	return all, scale
}

func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
