// Package freshness says how much the charts change for each unit that is spent on them.
//
// Worked example: two regions of 4 units every 3 hours. Between two charts of US 40 videos are new,
// of CA 10. A unit brings 10 new videos in US and 2.5 in CA. With US every 1 h 52 min and CA every
// 7 h 30 min as many units are spent, and each unit brings 6.25 in both, if charts change as fast
// as the clock goes.
package freshness

import (
	"math"
	"time"
)

// Chart is one complete chart. Two are compared in the places that both have: of a chart of 4 pages
// and one of 1, the first page. What a deeper chart has below is no change.
type Chart struct {
	At     time.Time // when it was complete
	Units  int64     // that it took
	Places []string  // videos, the first place first; "" for none
}

// Lane is one region, how often it is read now, and its last complete charts, the oldest first.
type Lane struct {
	Region   string
	Interval time.Duration
	Charts   []Chart
}

// Change is how the charts of a lane differ from those before them.
type Change struct {
	Lane
	Pairs    int           // of consecutive charts; without any, nothing below is known
	Gap      time.Duration // between two charts, on average
	Moved    float64       // share of compared places that hold another video, on average
	New      float64       // the same, whose video was in none of them before
	Units    int64         // spent on all charts but the first
	PerUnit  float64       // new videos for each of those units
	Proposed time.Duration // interval; 0 when none is proposed
}

// tells reports whether the charts are from a time long enough to say something of the interval.
func (c Change) tells() bool {
	return c.Pairs > 0 && c.Interval > 0 && c.Gap*time.Duration(c.Pairs) >= c.Interval
}

// Bound is how much longer or shorter than now a proposed interval may be, as a factor.
const Bound = 4

// Compare measures the lanes, and proposes intervals that make a unit bring as much in each as in
// every other, while together they spend as much as now, apart from Bound and from intervals that
// divide the day. A lane whose charts are all from less than one interval is left as it is. New
// videos are what counts, not places: one new video at the top moves all below.
func Compare(lanes []Lane) []Change {
	changes := make([]Change, len(lanes))
	var rates, spending float64 // new videos and units a second
	for i, l := range lanes {
		c := measure(l)
		changes[i] = c
		if c.tells() {
			rates += c.rate()
			spending += c.each() / c.Interval.Seconds()
		}
	}
	for i := range changes {
		if c := &changes[i]; c.tells() {
			c.Proposed = c.propose(rates / spending)
		}
	}
	return changes
}

func measure(l Lane) Change {
	c := Change{Lane: l}
	var moved, fresh, places float64
	for i := 1; i < len(l.Charts); i++ {
		before, after := l.Charts[i-1], l.Charts[i]
		depth := min(len(before.Places), len(after.Places))
		if depth == 0 || !after.At.After(before.At) {
			continue
		}
		m, n := differ(before.Places[:depth], after.Places[:depth])
		c.Pairs++
		c.Units += after.Units
		c.Gap += after.At.Sub(before.At)
		moved, fresh, places = moved+m, fresh+n, places+float64(depth)
	}
	if c.Pairs == 0 {
		return c
	}
	c.Moved, c.New = moved/places, fresh/places
	c.PerUnit = fresh / max(1, float64(c.Units))
	c.Gap /= time.Duration(c.Pairs)
	return c
}

// differ counts the places that hold another video than before, and the videos that were in no
// place. Both have as many places.
func differ(before, after []string) (moved, fresh float64) {
	known := make(map[string]bool, len(before))
	for _, v := range before {
		known[v] = true
	}
	for i, v := range after {
		if before[i] != v {
			moved++
		}
		if v != "" && !known[v] {
			fresh++
		}
	}
	return moved, fresh
}

// each is the units of one chart.
func (c Change) each() float64 { return max(1, float64(c.Units)) / float64(c.Pairs) }

func (c Change) rate() float64 { return c.PerUnit * c.each() / c.Gap.Seconds() }

// propose is the interval at which a unit brings level new videos, within bounds.
func (c Change) propose(level float64) time.Duration {
	now := c.Interval.Seconds()
	wanted := now * Bound
	if rate := c.rate(); rate > 0 {
		wanted = min(max(level*c.each()/rate, now/Bound), now*Bound)
	}
	return nearest(wanted)
}

// nearest is the part of a day, in full minutes, that comes closest as a factor; from a day on,
// full days.
func nearest(seconds float64) time.Duration {
	const day = 24 * 60
	minutes := seconds / 60
	if minutes >= day {
		return time.Duration(math.Round(minutes/day)) * 24 * time.Hour
	}
	best := 1.0
	for n := 1; n <= day; n++ {
		if day%n == 0 && math.Abs(math.Log(float64(n)/minutes)) < math.Abs(math.Log(best/minutes)) {
			best = float64(n)
		}
	}
	return time.Duration(best) * time.Minute
}
