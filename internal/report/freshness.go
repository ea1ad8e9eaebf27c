package report

import (
	"math"
	"time"
)

// ReadChart is one complete chart, as a sweep has read it. Two charts are compared in the places
// that both have: of a chart of 4 pages and one of 1, the first page.
type ReadChart struct {
	At     time.Time // when it was complete
	Units  int64     // that it took
	Places []string  // videos, the first place first; "" for none
}

// ReadLane is one region, how often it is read now, and its last complete charts, oldest first.
type ReadLane struct {
	Region   string
	Interval time.Duration
	Charts   []ReadChart
}

// Freshness is how much the charts of a lane differ from the charts before them.
//
// Worked example: two regions of 4 units every 3 hours. Between two charts of US 40 videos are new,
// of CA 10. A unit brings 10 new videos in US and 2.5 in CA. With US every 1 h 52 min and CA every
// 7 h 30 min the lanes spend as many units as before, and each unit brings 6.25 in both, if the
// number of new videos is proportional to the time between two charts.
type Freshness struct {
	ReadLane
	Pairs    int           // number of pairs of consecutive charts; with 0 the fields below are 0
	Gap      time.Duration // between two charts, on average
	Moved    float64       // fraction of the compared places that hold another video
	New      float64       // fraction of the compared places whose video was in none before
	Units    int64         // spent on all charts but the first
	PerUnit  float64       // new videos for each of those units
	Proposed time.Duration // interval; 0 when none is proposed
}

// suffices reports whether the charts cover at least one interval.
func (c Freshness) suffices() bool {
	return c.Pairs > 0 && c.Interval > 0 && c.Gap*time.Duration(c.Pairs) >= c.Interval
}

// Bound is how much longer or shorter than now a proposed interval may be, as a factor.
const Bound = 4

// CompareCharts measures the lanes, and proposes intervals at which a unit brings the same number
// of new videos in each lane, and all lanes together spend as much as now. Bound, and intervals that
// divide the day, make this approximate. It proposes nothing for a lane whose charts cover less
// than one interval. It counts new videos, not places, because one new video at the top moves all
// videos below it.
func CompareCharts(lanes []ReadLane) []Freshness {
	changes := make([]Freshness, len(lanes))
	var rates, spending float64 // new videos and units a second
	for i, l := range lanes {
		c := measure(l)
		changes[i] = c
		if c.suffices() {
			rates += c.rate()
			spending += c.each() / c.Interval.Seconds()
		}
	}
	for i := range changes {
		if c := &changes[i]; c.suffices() {
			c.Proposed = c.propose(rates / spending)
		}
	}
	return changes
}

func measure(l ReadLane) Freshness {
	c := Freshness{ReadLane: l}
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

// differ counts the places that hold another video than before, and the videos that are new. Both
// charts have the same number of places.
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

// each returns the units of one chart.
func (c Freshness) each() float64 { return max(1, float64(c.Units)) / float64(c.Pairs) }

func (c Freshness) rate() float64 { return c.PerUnit * c.each() / c.Gap.Seconds() }

// propose returns the interval at which a unit brings level new videos, within bounds.
func (c Freshness) propose(level float64) time.Duration {
	now := c.Interval.Seconds()
	wanted := now * Bound
	if rate := c.rate(); rate > 0 {
		wanted = min(max(level*c.each()/rate, now/Bound), now*Bound)
	}
	return nearest(wanted)
}

// nearest returns the part of a day, in full minutes, that is closest as a factor; from a day on,
// it returns full days.
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
