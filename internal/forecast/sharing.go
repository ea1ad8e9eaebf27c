package forecast

import (
	"cmp"
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
	share "quotabudget/internal/shareold"
)

// While units are short, scheduled runs pass through the shares here as they do in a daemon. Where nothing is unscheduled there is
// one day to play, and the shares are dealt anew for each run: the same runs are left out as a plan says. Where two hundred days
// are played, the shares stand for some time in each of them, and the runs of that time keep to them.

const (
	// stands is how long shares stand at the most in one of many days, and
	stands = time.Hour
	// outdated is the part of what was left by which unscheduled spending makes them out of date, as one divided by it.
	outdated = 20
)

// ShareName, as LostRun.Limit, says that a run is left out for its share.
const ShareName = "share"

// sharing is what is certain of the shares along the grid.
type sharing struct {
	lanes  []share.Lane  // without what differs from deal to deal
	ticks  [][]int64     // of each lane, after now, as far as a window reaches
	before []int64       // ticks of each lane from the beginning of the upstream's day until now
	ofDay  []int64       // ticks of each lane in the whole of that day
	asked  sums          // what all ticks after now want; only where a window slides
	days   []*gauge      // limits of a calendar day
	slides []*gauge      // sliding limits that are shared
	each   bool          // dealt anew for each run
	stands int64         // how long shares stand
	known  []calendarDay // the last of each limit
}

// dealing is a moment at which shares are dealt.
type dealing struct {
	days   []calendarDay
	slides []slidingWindow
}

// calendarDay is the day of one limit.
type calendarDay struct {
	start, end int64
	wanted     int64   // units, of all ticks from now to its end
	upto       []int   // ticks of each lane from now to its end
	ticks      []int64 // of each lane, of the whole day
}

// slidingWindow is the stretches of one sliding limit.
type slidingWindow struct {
	last  int64   // units of all ticks from now to the last horizon
	until []ahead // each horizon; none before they are asked for
}

// ahead is one of them, until a horizon.
type ahead struct {
	until  int64
	wanted int64 // units, of all ticks from now
	used   int64 // of the entries, what will still be inside
	from   int   // the first point whose spending will still be inside
}

// shared says whether a limit is shared as a daemon shares it.
func shared(l quota.Limit) bool {
	return l.Bucket == quota.DefaultBucket && (l.Window.Calendar == "day" || !l.Window.IsCalendar() && l.Window.Length >= share.Shortest)
}

// far is how far ahead ticks are to be known.
func (g *grid) far(limits []quota.Limit) time.Time {
	far := g.end
	for _, l := range limits {
		if !shared(l) || l.Bucket != g.bucket {
			continue
		}
		until := g.end.Add(l.Window.Length)
		if l.Window.IsCalendar() {
			_, until = l.Window.Bounds(g.end.Add(-time.Microsecond))
		}
		if until.After(far) {
			far = until
		}
	}
	return far
}

// share prepares the shares. Where only one day is played, they are dealt at each point, and if each tick has a point of its own,
// for each run.
func (g *grid) share(one bool) {
	s := &sharing{ticks: g.ticks, each: one && g.exact}
	for j := range g.limits {
		switch l := g.limits[j].limit; {
		case !shared(l):
		case l.Window.IsCalendar():
			s.days = append(s.days, &g.limits[j])
		default:
			s.slides = append(s.slides, &g.limits[j])
		}
	}
	if len(g.lanes) == 0 || len(s.days)+len(s.slides) == 0 {
		return
	}
	g.sharing = s
	for _, l := range g.lanes {
		s.lanes = append(s.lanes, share.Lane{Region: l.Region, Weight: l.Weight, Priority: l.Priority, Floor: l.Floor, Cost: int64(l.Pages) * l.units(g.bucket)})
		s.before = append(s.before, l.Count(g.today.Add(-time.Nanosecond), g.at))
		s.ofDay = append(s.ofDay, l.Count(g.today.Add(-time.Nanosecond), g.end.Add(-time.Nanosecond)))
	}
	s.stands = stands.Microseconds()
	if one {
		s.stands = 0
	}
	if len(s.slides) > 0 {
		s.asked = s.sum()
	}
	for i := range g.points {
		if p := &g.points[i]; len(p.runs) > 0 {
			p.deal = g.newDeal(p.at)
		}
	}
}

func (g *grid) newDeal(at int64) *dealing {
	d := new(dealing)
	for j, l := range g.sharing.days {
		d.days = append(d.days, g.calendarDay(j, l.limit.Window, at))
	}
	for _, l := range g.sharing.slides {
		last := share.Horizon(at, l.limit.Window.Length.Microseconds(), share.Horizons)
		d.slides = append(d.slides, slidingWindow{last: g.sharing.wanted(last)})
	}
	return d
}

// calendarDay is the day of limit j that holds at, which is mostly that of the deal before.
func (g *grid) calendarDay(j int, w quota.Window, at int64) calendarDay {
	if known := g.sharing.known; j < len(known) && at < known[j].end {
		return known[j]
	}
	start, end := w.Bounds(time.UnixMicro(at))
	day := calendarDay{start: start.UnixMicro(), end: end.UnixMicro()}
	day.upto, day.wanted = g.sharing.until(day.end - 1)
	for i, l := range g.lanes {
		if start.After(g.at) {
			past, _ := slices.BinarySearch(g.ticks[i], day.start)
			day.ticks = append(day.ticks, int64(day.upto[i]-past))
		} else {
			day.ticks = append(day.ticks, l.Count(start.Add(-time.Nanosecond), g.at)+int64(day.upto[i]))
		}
	}
	g.sharing.known = append(g.sharing.known[:min(j, len(g.sharing.known))], day)
	return day
}

// until is how many ticks each lane has from now to a moment, and what they want.
func (s *sharing) until(at int64) (upto []int, wanted int64) {
	for i, ticks := range s.ticks {
		n, _ := slices.BinarySearch(ticks, at+1)
		upto, wanted = append(upto, n), wanted+int64(n)*s.lanes[i].Cost
	}
	return upto, wanted
}

// sum is what all ticks want, in the order of their times.
func (s *sharing) sum() (asked sums) {
	type tick struct{ at, units int64 }
	var all []tick
	for i, ticks := range s.ticks {
		for _, at := range ticks {
			all = append(all, tick{at, s.lanes[i].Cost})
		}
	}
	slices.SortFunc(all, func(a, b tick) int { return cmp.Compare(a.at, b.at) })
	for _, t := range all {
		asked.add(t.at, t.units)
	}
	return asked
}

// wanted is what all ticks from now to a moment want, where a window slides.
func (s *sharing) wanted(until int64) int64 { return s.asked.total - s.asked.after(until) }

// look finds the horizons of a sliding limit at a moment.
func (g *grid) look(h *slidingWindow, l *gauge, at int64) []ahead {
	length := l.limit.Window.Length.Microseconds()
	for i := len(h.until) + 1; i <= share.Horizons; i++ {
		n := ahead{until: share.Horizon(at, length, i)}
		n.wanted = g.sharing.wanted(n.until)
		n.used = g.log.after(n.until - length)
		n.from, _ = slices.BinarySearchFunc(g.points, n.until-length+1, func(p point, t int64) int { return int(min(max(p.at-t, -1), 1)) })
		h.until = append(h.until, n)
	}
	return h.until
}

// rations are shares that were dealt, and the limit by which.
type rations struct {
	*share.Rations
	day   *gauge // nil when a sliding window decided
	left  int64  // units, when they were dealt
	spent int64  // in all, likewise
	runs  int64  // units of runs since
	until int64  // when they are out of date
}

// admits says whether the share of a run's lane lets it run at point i.
func (w *walker) admits(i int, r *want) bool {
	w.dealAt(i)
	if w.rations.Rations == nil {
		return true
	}
	left := int64(math.MaxInt64)
	for _, l := range w.sharing.days {
		left = min(left, w.gap(i, l))
	}
	for _, l := range w.sharing.slides {
		left = min(left, w.gap(i, l))
	}
	return w.rations.Admit(r.lane, left)
}

// dealAt deals the shares at point i when it is time to, and says whether units are short.
func (w *walker) dealAt(i int) (short bool) {
	if w.sharing == nil {
		return false
	}
	if w.points[i].deal == w.dealt && !w.sharing.each {
		return w.rations.Rations != nil
	}
	if w.dealt = w.points[i].deal; w.outdated(i) {
		w.rations = w.ration(i, w.dealt)
		stands := w.sharing.stands
		if w.rations.Rations == nil { // it may soon be short
			stands = min(stands, bin.Microseconds())
		}
		w.rations.spent, w.rations.until = w.spent[i], w.points[i].at+stands
		for _, d := range w.dealt.days {
			w.rations.until = min(w.rations.until, d.end)
		}
	}
	return w.rations.Rations != nil
}

// dealtToEach says whether shares are dealt for each run, so that one run may change what the next one has.
func (w *walker) dealtToEach() bool { return w.sharing != nil && w.sharing.each }

// outdated says whether the shares are to be dealt anew at point i.
func (w *walker) outdated(i int) bool {
	r := &w.rations
	if at := w.points[i].at; r.Rations == nil || at >= r.until {
		return at >= r.until
	}
	unscheduled := w.spent[i] - r.spent - r.runs
	return unscheduled*outdated > r.left-r.runs
}

// gap is what a limit leaves at point i.
func (w *walker) gap(i int, l *gauge) int64 {
	return max(0, l.cap[i]-l.used[i]-w.inside(i, l)-w.points[i].held)
}

// reach is a stretch that may decide.
type reach struct {
	share.Stretch
	which int // of the limits
	*ahead
}

// ration deals the shares over the stretch that is shortest, as package plan does.
func (w *walker) ration(i int, d *dealing) rations {
	calendar, daily := w.calendar(i, d)
	sliding, slides := w.sliding(i, d)
	switch {
	case !daily && !slides:
	case !daily, slides && sliding.Overrules(calendar.Stretch):
		if sliding.Wanted > sliding.Left {
			w.recall(i)
			return rations{Rations: w.divideWindow(sliding), left: sliding.Left}
		}
	case calendar.Wanted > calendar.Left:
		w.recall(i)
		return rations{Rations: w.divideDay(calendar, &d.days[calendar.which]), day: w.sharing.days[calendar.which], left: calendar.Left}
	}
	return rations{}
}

// calendar is the day of the limit that is shortest; false when there is none.
func (w *walker) calendar(i int, d *dealing) (shortest reach, found bool) {
	for j, l := range w.sharing.days {
		s := reach{Stretch: share.Stretch{Left: w.gap(i, l), Wanted: d.days[j].wanted - w.wanted}, which: j}
		if !found || s.Shorter(shortest.Stretch) {
			shortest, found = s, true
		}
	}
	return shortest, found
}

// sliding is the stretch of a sliding limit that is shortest; false where there are enough for all ticks of one length of each window.
func (w *walker) sliding(i int, d *dealing) (shortest reach, found bool) {
	for j, l := range w.sharing.slides {
		if d.slides[j].last-w.wanted <= w.gap(i, l) {
			continue
		}
		until := w.look(&d.slides[j], l, w.points[i].at)
		for k := range until {
			h := &until[k]
			inside := h.used + w.spent[i]
			if h.from > 0 {
				inside -= w.spent[h.from-1]
			}
			s := reach{share.Stretch{Left: max(0, l.limit.Cap(false)-inside-w.points[i].held), Wanted: h.wanted - w.wanted}, j, h}
			if !found || s.Shorter(shortest.Stretch) {
				shortest, found = s, true
			}
		}
	}
	return shortest, found
}

func (w *walker) divideDay(s reach, d *calendarDay) *share.Rations {
	day := share.Day{Left: s.Left, Lanes: slices.Clone(w.sharing.lanes)}
	for n := range day.Lanes {
		l := &day.Lanes[n]
		l.Ticks, l.Remaining, l.Spent = d.ticks[n], int64(d.upto[n]-w.lanes[n].done), w.spentBy(n, d.start-1)
	}
	return day.Ration()
}

func (w *walker) divideWindow(s reach) *share.Rations {
	day := share.Day{Left: s.Left, Lanes: slices.Clone(w.sharing.lanes), Slides: true}
	upto, _ := w.sharing.until(s.until)
	from := s.until - w.sharing.slides[s.which].limit.Window.Length.Microseconds()
	for n := range day.Lanes {
		l := &day.Lanes[n]
		l.Remaining = int64(upto[n] - w.lanes[n].done)
		l.Ticks, l.Spent = l.Remaining, w.spentBy(n, from)
		l.Number = share.Number(w.today, w.sharing.ofDay[n], w.sharing.before[n]+int64(w.lanes[n].done))
	}
	return day.Ration()
}
