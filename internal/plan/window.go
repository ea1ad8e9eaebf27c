package plan

import (
	"math"
	"time"

	"quotabudget/internal/quota"
)

// window is one limit on its way through time: it only ever moves on.
type window struct {
	limit  quota.Limit
	most   int64 // units for scheduled charges
	length int64 // µs, of a sliding window
	head   int   // the first entry inside
	start  int64 // of a calendar window
	end    int64
	line   line // of a pace
	peak   peak // of the upstream day
	ever   peak
}

// peak is the most that was used and held, and the least that was left.
type peak struct {
	use, at int64
	legroom int64
}

func (p *peak) see(use, at, most int64) {
	if use > p.use {
		p.use, p.at = use, at
	}
	p.legroom = min(p.legroom, most-use)
}

func newWindow(l quota.Limit) window {
	w := window{limit: l, most: l.Cap(false), length: l.Window.Length.Microseconds(), end: math.MinInt64}
	w.ever = peak{use: -1, legroom: math.MaxInt64}
	if l.Pace != nil {
		w.line = line{pace: *l.Pace, units: w.most}
	}
	return w
}

// used moves to n and returns the units inside.
func (w *window) used(l *log, n int64) int64 {
	if w.length > 0 {
		for after := n - w.length; w.head < len(l.stamps) && l.stamps[w.head] <= after; {
			w.head++
		}
		return l.since(w.head)
	}
	if n >= w.end {
		start, end := w.limit.Window.Bounds(moment(n))
		w.start, w.end = start.UnixMicro(), end.UnixMicro()
		if w.limit.Pace != nil {
			w.line.draw(w.limit.Window, start, end)
		}
	}
	for w.head < len(l.stamps) && l.stamps[w.head] < w.start {
		w.head++
	}
	return l.since(w.head)
}

// allows is how many units may be inside at n, to which the window has moved.
func (w *window) allows(n int64) int64 {
	if w.limit.Pace != nil {
		return w.line.at(n)
	}
	return w.most
}

// standing is the window as package quota decides on it.
func (w *window) standing(l *log, holds []quota.Hold, n int64) quota.Standing {
	return quota.Standing{Limit: w.limit, Log: l, Holds: holds, Now: n, Start: w.start, End: w.end}
}

// line is quota.Pace.Line for one window after another, without asking the calendar each time.
type line struct {
	pace    quota.Pace
	units   int64
	start   int64
	whole   float64
	hours   []hour
	current int
}

// hour is a stretch of the day with one weight.
type hour struct {
	start  int64   // µs
	before float64 // area below the curve since the day's start
	weight float64
}

func (c *line) draw(w quota.Window, start, end time.Time) {
	c.start, c.current, c.hours, c.whole = start.UnixMicro(), 0, c.hours[:0], end.Sub(start).Seconds()
	if len(c.pace.Curve) == 0 {
		return
	}
	c.whole = 0
	for from := start; from.Before(end); {
		local := from.In(w.Zone)
		_, offset := local.Zone()
		next := from.Add(time.Hour - time.Duration((from.Unix()+int64(offset))%3600)*time.Second)
		if next.After(end) {
			next = end
		}
		weight := float64(c.pace.Curve[local.Hour()])
		c.hours = append(c.hours, hour{from.UnixMicro(), c.whole, weight})
		c.whole += weight * next.Sub(from).Seconds()
		from = next
	}
}

func (c *line) at(n int64) int64 {
	part := seconds(n - c.start)
	if len(c.hours) > 0 {
		for c.current+1 < len(c.hours) && c.hours[c.current+1].start <= n {
			c.current++
		}
		h := c.hours[c.current]
		part = h.before
		if n > h.start {
			part += h.weight * seconds(n-h.start)
		}
	}
	return min(c.units, c.pace.Slack+int64(float64(c.units)*part/c.whole))
}

func seconds(micros int64) float64 { return (time.Duration(micros) * time.Microsecond).Seconds() }

func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
