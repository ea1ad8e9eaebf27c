package sim

import (
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// window is the state of one limit as time moves forward.
type window struct {
	limit quota.Limit
	brake bool // a throttle or a pace
	// cached properties of the limit's window
	slides, restores bool
	most             int64 // units for scheduled charges
	length           int64 // µs, of a sliding or an anchored window; 0 for others
	at               int64 // the current moment
	head             int   // the first entry inside; for a restoring window, the end of the log
	used             int64 // units of the entries inside; for a restoring window, its level
	start            int64 // of a calendar window
	end              int64
	reset            int64 // of an anchored window: the last known end; 0 for none
	level            int64 // of a restoring window, at at
	line             line  // of a pace
	peak             Peak
}

// Peak is the most that was used and held since the peaks were cleared, and the least that was
// left for scheduled charges.
type Peak struct {
	Use, At int64 // Use is -1 if nothing was seen
	Margin  int64
}

// NoPeak returns the peak before anything was seen.
func NoPeak() Peak { return Peak{Use: -1, Margin: math.MaxInt64} }

// See raises the peak to the use at a moment, of at most most units.
func (p *Peak) See(use, at, most int64) {
	if use > p.Use {
		p.Use, p.At = use, at
	}
	p.Margin = min(p.Margin, most-use)
}

func newWindow(l quota.Limit, brake bool, reset time.Time) window {
	w := window{limit: l, brake: brake, slides: l.Window.IsSliding(),
		restores: l.Window.IsRestoring(), most: l.Cap(false), end: math.MinInt64, peak: NoPeak(),
		length: l.Window.Length.Microseconds()}
	if l.Window.Anchored && !reset.IsZero() {
		w.reset = reset.UnixMicro()
	}
	if l.Pace != nil {
		w.line = line{pace: *l.Pace, units: w.most}
	}
	return w
}

// move moves to n.
func (w *window) move(l *log, n int64) {
	if w.restores {
		w.restore(n)
		w.head = len(l.stamps)
		return
	}
	w.at = n
	if w.length == 0 && n >= w.end {
		start, end := w.limit.Window.Bounds(moment(n))
		w.start, w.end = start.UnixMicro(), end.UnixMicro()
		if w.limit.Pace != nil {
			w.line.draw(w.limit.Window, start, end)
		}
	}
	after := w.after(n)
	for w.head < len(l.stamps) && l.stamps[w.head] <= after {
		w.head++
	}
	w.used = l.since(w.head)
}

// after returns the time after which entries count at n, in the current calendar window.
func (w *window) after(n int64) int64 {
	switch {
	case w.length == 0:
		return w.start - 1
	case w.reset > n:
		return w.reset - 1 - w.length
	case w.reset > 0:
		return max(n-w.length, w.reset-1)
	}
	return n - w.length
}

// restore lowers the level of a restoring window to that at n.
func (w *window) restore(n int64) {
	rate := w.limit.Window.Restore
	w.level, w.at = rate.LevelAfter(w.level, max(0, n-w.at)), max(w.at, n)
	_, den := rate.Terms()
	w.used = (w.level + den - 1) / den
}

// take counts units charged at n, by now the log's newest entry.
func (w *window) take(n, units int64) {
	if w.restores {
		w.restore(n)
		_, den := w.limit.Window.Restore.Terms()
		w.level += units * den
	}
	w.used += units
}

// soon is how far ahead units count as free when a run asks for its share: the charges of a run
// are a little apart, and so they leave a window a little apart.
const soon = int64(share.Soon / time.Microsecond)

// usedSoon returns how much of what is used now will still be used soon.
func (w *window) usedSoon(l *log) int64 {
	if !w.slides {
		return w.used
	}
	head := w.head
	for head < len(l.stamps) && l.stamps[head] <= w.at+soon-w.length {
		head++
	}
	return l.since(head)
}

// still reports whether the window holds no more at n than now.
func (w *window) still(l *log, n int64) bool {
	switch {
	case w.restores:
		return true
	case w.length == 0:
		return n < w.end
	}
	return w.head == len(l.stamps) || l.stamps[w.head] > w.after(n)
}

// allows returns the units that may be inside at n, the current moment.
func (w *window) allows(n int64) int64 {
	if w.limit.Pace != nil {
		return w.line.at(n)
	}
	return w.most
}

// standing returns the window in the form that package quota decides on.
func (w *window) standing(b *bucket, n int64) quota.Standing {
	return quota.Standing{Limit: w.limit, Log: &b.log, Holds: b.holds, Now: n, Start: w.start,
		End: w.end, Reset: w.reset, Level: w.level,
		Lapsing: slices.ContainsFunc(b.lapses, func(units int64) bool { return units >= 0 })}
}

func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
