package share

import (
	"math"
	"time"

	"quotabudget/internal/quota"
)

// never is the interval of a lane that gets no run.
const never = math.MaxInt64 / 2

// division is one limit's capacity, divided among the lanes.
type division struct {
	limit  quota.Limit
	index  int     // index in Rule.Limits
	window *window // current window; nil before the first decision

	left     int64 // units left at the last decision
	enough   bool  // enough for every coming tick
	capacity int64 // units the lanes may take in the window
	*cut           // the division of capacity; nil until computed
}

// cut is how a capacity is divided.
type cut struct {
	total     int64
	units     []float64 // each lane's share
	intervals []int64   // between two runs, in parts of a tick; 0: each tick runs
	floored   []bool    // the lane's share is at most its floor
	short     bool      // some lane's interval is not 0
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

// open makes the window that contains now the current one, and counts its ticks.
func (b *Book) open(d *division) {
	at := b.now
	if w := d.window; w != nil && at < w.until && at >= w.begin {
		return
	}
	w := &window{slides: !d.limit.Window.IsCalendar()}
	if w.slides {
		w.begin, w.until = bounds(b.rule.Reset, at)
		w.start, w.end = w.begin, w.begin+d.limit.Window.Length.Microseconds()
	} else {
		w.start, w.end = bounds(d.limit.Window, at)
		w.until = w.end
		if w.begin = b.firstRun(w.start, at); w.begin == at {
			w.until = at + 1 // until a lane runs, the window starts again at each decision
		}
	}
	w.length, w.wanted = w.end-w.begin, b.past
	for i := range b.rule.Lanes {
		l, cost := &b.rule.Lanes[i], b.lanes[i].cost
		n := l.Count(before(w.begin), before(w.end))
		w.ticks = append(w.ticks, n)
		w.wants += n * cost
		w.wanted += l.Count(before(at), before(w.end)) * cost
	}
	d.window, d.cut = w, nil
}

// bounds returns the calendar day, week or month that contains a moment.
func bounds(w quota.Window, at int64) (start, end int64) {
	from, to := w.Bounds(moment(at))
	return from.UnixMicro(), to.UnixMicro()
}

// firstRun returns when the lanes began to use a day: its start, if any lane ran before the day. If
// no lane has run yet today, it returns at, so that the rest of the day is divided.
func (b *Book) firstRun(start, at int64) int64 {
	if len(b.all.at) > 0 && b.all.at[0] < start {
		return start
	}
	if i := b.all.from(start); i < len(b.all.at) {
		at = min(at, b.all.at[i])
	}
	return max(start, at)
}

// before returns the moment just before micros, so that ticks at micros come after it.
func before(micros int64) time.Time { return moment(micros).Add(-time.Nanosecond) }

// since returns the moment from which charges count at a moment of the window.
func (w *window) since(at int64) int64 {
	if w.slides {
		return at - w.length
	}
	return w.start
}

// short divides what is left, and reports whether a limit leaves too little for all coming ticks.
func (b *Book) short(d *division, at, left int64) bool {
	b.moveTo(at)
	b.open(d)
	enough := !d.window.slides && d.window.wanted-b.past <= left
	if enough != d.enough {
		d.enough = enough
		b.changes++
	}
	d.left = left
	b.divide(d, at, left)
	return !enough && d.cut.short
}

// divide computes each lane's interval. The capacity excludes what others have charged or hold, and
// any remainder too small for a run.
func (b *Book) divide(d *division, at, left int64) {
	w := d.window
	from := w.since(at)
	others := b.others.since(from)
	capacity := d.limit.Cap(false)
	held := max(0, capacity-left-others-b.all.since(from))
	if w.slides { // count units that leave within a grain as gone
		others = b.others.since(from + grain)
	}
	capacity = max(0, capacity-others-held)
	d.capacity = capacity - capacity%b.unit
	capacity = min(d.capacity, w.wants) // a larger capacity gives the same division
	if d.cut == nil || d.cut.total != capacity {
		d.cut = b.cut(w, capacity)
		b.changes++
	}
}

// cut divides a capacity of a window.
func (b *Book) cut(w *window, capacity int64) *cut {
	c := &cut{total: capacity}
	var claims []claim
	const day = 24 * int64(time.Hour/time.Microsecond)
	for i, l := range b.rule.Lanes {
		demand := float64(w.ticks[i] * b.lanes[i].cost)
		if b.lanes[i].cost > capacity {
			demand = 0 // not even one run fits
		}
		days := max(1, (w.length+day/2)/day)
		floor := mulDiv(max(l.Floor, 0), days, 1)
		claims = append(claims, claim{demand, float64(max(l.Weight, 0)), l.Priority, float64(floor)})
	}
	c.units = maxMin(float64(capacity), claims)
	for i, units := range c.units {
		interval, cost := int64(0), b.lanes[i].cost
		switch {
		case cost > capacity && w.ticks[i] > 0, units == 0 && claims[i].demand > 0:
			interval = never
		case units < claims[i].demand:
			interval = int64(min(float64(w.ticks[i]*tickParts*cost)/units, never))
			if interval > never/8 {
				interval = never
			}
		}
		c.intervals = append(c.intervals, interval)
		c.floored = append(c.floored, units > 0 && units <= claims[i].floor)
		c.short = c.short || interval > 0
	}
	return c
}

func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
