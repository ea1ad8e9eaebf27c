package plan

import (
	"math"
	"time"

	share "quotabudget/internal/shareold"
)

// reach is a stretch of a window that slides: entries after from are inside at until.
type reach struct {
	share.Stretch
	from, until int64
	which, i    int // the window's number, and the horizon's
}

// ahead is the ticks of one lane that are to come.
type ahead struct {
	lane  *Lane
	times []int64 // of those from number first on
	first int
	done  int                       // the number of the next one
	known int64                     // no tick up to here is missing from times
	found [][share.Horizons + 1]int // of each sliding window: the number of the first tick after horizon i
}

// today is how many ticks each lane has had of the upstream's day.
type today struct {
	start time.Time
	end   int64
	ticks []int64 // of the whole day
	done  []int64
}

func (g *sharing) lookAhead(s *player) {
	g.ahead, g.spent = make([]ahead, len(s.Lanes)), make([]log, len(s.Lanes))
	g.today = today{end: math.MinInt64, ticks: make([]int64, len(s.Lanes)), done: make([]int64, len(s.Lanes))}
	for i := range s.Lanes {
		g.ahead[i] = ahead{lane: &s.Lanes[i], known: s.From.UnixMicro() - 1, found: make([][share.Horizons + 1]int, len(g.slides))}
		for e := range s.scheduledBefore(i) {
			g.spent[i].add(e.At.UnixMicro(), e.Units)
		}
	}
}

// slide is the stretch of a sliding window that is shortest of units; nil where there are enough for all ticks of one length of the
// window.
func (g *sharing) slide(s *player, at int64) (shortest *reach) {
	if len(g.slides) > 0 {
		g.today.see(s, at)
	}
	for which, w := range g.slides {
		last := share.Horizon(at, w.length, share.Horizons)
		if g.wanted(which, share.Horizons, last) <= g.left(w, at) {
			continue
		}
		for i := 1; i <= share.Horizons; i++ {
			until := share.Horizon(at, w.length, i)
			inside := g.bucket.log.UsedAfter(until - w.length)
			left := max(0, w.most-inside-g.bucket.held)
			n := reach{share.Stretch{Left: left, Wanted: g.wanted(which, i, until)}, until - w.length, until, which, i}
			if shortest == nil || n.Shorter(shortest.Stretch) {
				shortest = &n
			}
		}
	}
	return shortest
}

// free is what all windows that are shared leave soon.
func (g *sharing) free(at int64) (units int64) {
	units = math.MaxInt64
	for i := range g.days {
		units = min(units, g.left(g.days[i].window, at))
	}
	for _, w := range g.slides {
		units = min(units, max(0, w.most-g.bucket.log.UsedAfter(at+share.Soon.Microseconds()-w.length)-g.bucket.held))
	}
	return units
}

// wanted is what all ticks until horizon i of a sliding window want.
func (g *sharing) wanted(which, i int, until int64) (units int64) {
	for lane := range g.ahead {
		units += g.ahead[lane].count(which, i, until) * g.lanes[lane].Cost
	}
	return units
}

// divide makes the day of the stretch.
func (g *sharing) divide(n reach) share.Day {
	day := share.Day{Left: n.Left, Lanes: make([]share.Lane, len(g.lanes)), Slides: true}
	copy(day.Lanes, g.lanes)
	for i := range day.Lanes {
		l := &day.Lanes[i]
		l.Remaining = g.ahead[i].count(n.which, n.i, n.until)
		l.Ticks, l.Number = l.Remaining, share.Number(g.today.start, g.today.ticks[i], g.today.done[i])
		l.Spent = g.spent[i].UsedAfter(n.from)
	}
	return day
}

// see begins a new day when the old one has ended. Ticks before the plan began are done.
func (t *today) see(s *player, at int64) {
	if at < t.end {
		return
	}
	start, end := s.Reset.Bounds(moment(at))
	t.start, t.end = start, end.UnixMicro()
	for i := range t.done {
		t.ticks[i] = s.Lanes[i].Count(start.Add(-time.Nanosecond), end.Add(-time.Nanosecond))
		t.done[i] = 0
		if s.From.After(start) {
			t.done[i] = s.Lanes[i].Count(start.Add(-time.Nanosecond), s.From.Add(-time.Nanosecond))
		}
	}
}

// count is how many ticks are to come until horizon i of a window, which only ever moves on.
func (a *ahead) count(which, i int, until int64) int64 {
	a.read(until)
	n := max(a.found[which][i], a.done)
	for n-a.first < len(a.times) && a.times[n-a.first] <= until {
		n++
	}
	a.found[which][i] = n
	return int64(n - a.done)
}

// read makes the ticks up to a moment known, and some more, and forgets those that are done.
func (a *ahead) read(until int64) {
	if until <= a.known {
		return
	}
	const more = int64(24 * time.Hour / time.Microsecond)
	a.times = a.times[:copy(a.times, a.times[a.done-a.first:])]
	a.first = a.done
	to := until + more
	for tick := range a.lane.Ticks(moment(a.known), moment(to)) {
		a.times = append(a.times, tick.At.UnixMicro())
	}
	a.known = to
}
