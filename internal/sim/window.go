package sim

import (
	"math"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// window is one limit on its way through time: it only ever moves on.
type window struct {
	limit  quota.Limit
	brake  bool  // a throttle or a pace
	most   int64 // units for scheduled charges
	length int64 // µs, of a sliding window
	at     int64 // to which it has moved
	head   int   // the first entry inside
	used   int64 // units of the entries inside
	start  int64 // of a calendar window
	end    int64
	line   line // of a pace
	peak   Peak
}

// Peak is the most that was used and held since the peaks were last cleared, and the least that was
// left for scheduled charges.
type Peak struct {
	Use, At int64 // Use is -1 before any was seen
	Margin  int64
}

// NoPeak is the peak of nothing.
func NoPeak() Peak { return Peak{Use: -1, Margin: math.MaxInt64} }

// See raises the peak by what is used at a moment, of at most so many units.
func (p *Peak) See(use, at, most int64) {
	if use > p.Use {
		p.Use, p.At = use, at
	}
	p.Margin = min(p.Margin, most-use)
}

func newWindow(l quota.Limit, brake bool) window {
	w := window{limit: l, brake: brake, most: l.Cap(false), end: math.MinInt64, peak: NoPeak(),
		length: l.Window.Length.Microseconds()}
	if l.Pace != nil {
		w.line = line{pace: *l.Pace, units: w.most}
	}
	return w
}

// move goes on to n.
func (w *window) move(l *log, n int64) {
	w.at = n
	after := n - w.length
	if w.length == 0 {
		if n >= w.end {
			start, end := w.limit.Window.Bounds(moment(n))
			w.start, w.end = start.UnixMicro(), end.UnixMicro()
			if w.limit.Pace != nil {
				w.line.draw(w.limit.Window, start, end)
			}
		}
		after = w.start - 1
	}
	for w.head < len(l.stamps) && l.stamps[w.head] <= after {
		w.head++
	}
	w.used = l.since(w.head)
}

// soon is what counts as free already when a run asks for its share: the charges of a run are a
// little apart, and so are those that leave the window a day later.
const soon = int64(share.Soon / time.Microsecond)

// usedSoon is what will be used of what is used now.
func (w *window) usedSoon(l *log) int64 {
	head := w.head
	for w.length > 0 && head < len(l.stamps) && l.stamps[head] <= w.at+soon-w.length {
		head++
	}
	return l.since(head)
}

// still reports whether the window holds the same entries at n as now.
func (w *window) still(l *log, n int64) bool {
	if w.length == 0 {
		return n < w.end
	}
	return w.head == len(l.stamps) || l.stamps[w.head] > n-w.length
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

func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
