package forecast

import (
	"math"
	"slices"
	"sort"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	share "quotabudget/internal/shareold"
)

// Times in this file are Unix microseconds.

const never = int64(math.MaxInt64)

// shortest is the shortest window by which a bucket runs dry: a limit on less is a throttle, which holds spending up. A scheduled
// run does not wait, and loses what a throttle denies it.
const shortest = 10 * time.Minute

// finest is the time from one point of the grid to the next, where no tick is nearer. A forecast over more than two days has
// longer steps.
const finest = time.Minute

// want is a run at a tick.
type want struct {
	schedule.Tick
	lane  int
	pages int
	price int64 // units of a page
}

// point is a moment at which the grid asks who wants what.
type point struct {
	at    int64
	held  int64   // set aside
	draws int64   // taken, without asking, of a reservation that expires here
	bin   int     // of unscheduled spending that the time since the point before lies in
	part  float64 // of that bin's units
	runs  []want
	asked int64    // units of all runs
	deal  *dealing // nil where the shares stand
}

// gauge is one limit along the grid.
type gauge struct {
	limit quota.Limit
	cap   []int64 // at each point
	used  []int64 // of the entries there are, at each point
	from  []int   // the first point whose spending is still in the window at this one
	pace  bool
}

// grid is what is certain of the time from now to the reset. Its first point is now, its last the reset.
type grid struct {
	bucket    string
	at, end   time.Time
	slides    bool // end is no reset
	suspended int64
	today     time.Time // when the day began that ends at the reset; a midnight where there is none
	lanes     []Lane    // that spend from the bucket
	ticks     [][]int64 // of each, after now
	laneLogs  []sums    // of each, the entries
	progress  []progress
	holds     []quota.Hold
	exact     bool // each tick has a point
	points    []point
	log       sums
	limits    []gauge
	brakes    []gauge  // paces and throttles, which hold scheduled runs back without making the bucket dry
	sharing   *sharing // nil where nothing is shared
}

func newGrid(b Bucket) *grid {
	g := &grid{bucket: b.Name, at: b.At, log: newSums(b.Entries)}
	g.today, g.end, g.slides = horizon(b)
	if !b.SuspendedUntil.IsZero() {
		g.suspended = b.SuspendedUntil.UnixMicro()
	}
	wants := g.wants(b)
	g.lay(wants, b.Reservations)
	g.hold(b.Reservations)
	g.laneLogs, g.progress = logs(g.lanes, b.Entries), make([]progress, len(g.lanes))
	long := foretold(b)
	for _, l := range long {
		g.limits = append(g.limits, g.gauge(l))
	}
	for _, l := range b.Paces {
		if l.Bucket == b.Name {
			g.brakes = append(g.brakes, g.gauge(l))
		}
	}
	for _, l := range b.Limits { // throttles say something where each tick has a point
		if l.Bucket == b.Name && !slices.Contains(long, l) && g.exact {
			g.brakes = append(g.brakes, g.gauge(l))
		}
	}
	return g
}

// foretold are the bucket's limits without its throttles, unless it has no others.
func foretold(b Bucket) []quota.Limit {
	var all, long []quota.Limit
	for _, l := range b.Limits {
		if l.Bucket != b.Name {
			continue
		}
		all = append(all, l)
		if l.Window.IsCalendar() || l.Window.Length >= shortest {
			long = append(long, l)
		}
	}
	if len(long) == 0 {
		return all
	}
	return long
}

// horizon is the upstream's day; without one, the longest calendar window, or one longest window from now.
func horizon(b Bucket) (start, end time.Time, slides bool) {
	var longest quota.Window
	for _, l := range b.Limits {
		if l.Bucket == b.Name && l.Window.IsCalendar() && l.Window.Longest() > longest.Longest() {
			longest = l.Window
		}
	}
	for _, w := range []quota.Window{b.Reset, longest} {
		if w.IsCalendar() {
			start, end := w.Bounds(b.At)
			return start, end.UTC(), false
		}
	}
	ahead := time.Hour
	for _, l := range b.Limits {
		if l.Bucket == b.Name {
			ahead = max(ahead, l.Window.Length)
		}
	}
	return b.At.Truncate(24 * time.Hour), b.At.Add(ahead).UTC(), true
}

// maxTicks is how many ticks have points of their own. More, from a schedule of every few seconds, share those of the grid.
const maxTicks = 5000

// wants are the runs after now and before the reset, in the order of their times. What a tick exactly at the reset spends is the
// next day's.
func (g *grid) wants(b Bucket) []want {
	var all []want
	far, end := g.far(b.Limits).Add(-time.Microsecond), g.end.UnixMicro()
	for _, l := range b.Lanes {
		price := l.units(g.bucket)
		if price == 0 || l.Pages <= 0 || l.Schedule == nil {
			continue
		}
		var ticks []int64
		for t := range l.Ticks(g.at, far) {
			at := t.At.UnixMicro()
			ticks = append(ticks, at)
			if at < end {
				all = append(all, want{t, len(g.lanes), l.Pages, price})
			}
		}
		g.lanes, g.ticks = append(g.lanes, l), append(g.ticks, ticks)
	}
	slices.SortStableFunc(all, func(a, b want) int { return a.At.Compare(b.At) })
	g.exact = len(all) <= maxTicks
	return all
}

// lay makes the points.
func (g *grid) lay(wants []want, reservations []quota.Reservation) {
	start, end := g.at.UnixMicro(), g.end.UnixMicro()
	step := finest.Microseconds()
	if n := (end - start) / (2 * 24 * 60 * step); n > 0 {
		step *= n + 1
	}
	var at []int64
	for t := start; t < end; t += step {
		at = append(at, t)
	}
	at = append(at, end)
	if g.exact {
		for _, w := range wants {
			at = append(at, w.At.UnixMicro())
		}
	}
	for _, r := range reservations {
		if t := r.ExpiresAt.UnixMicro(); t > start && t < end {
			at = append(at, t)
		}
	}
	for t := start; t < end; t += bin.Microseconds() {
		at = append(at, t)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	g.points = make([]point, len(at))
	for i, t := range at {
		g.points[i].at = t
		if i > 0 && i < len(at)-1 { // nobody asks at the reset itself
			g.points[i].bin = int((at[i-1] - start) / bin.Microseconds())
			g.points[i].part = float64(t-at[i-1]) / float64(bin.Microseconds())
		}
	}
	i := 0
	for _, w := range wants {
		for i < len(at)-2 && at[i] < w.At.UnixMicro() {
			i++
		}
		g.points[i].runs = append(g.points[i].runs, w)
		g.points[i].asked += int64(w.pages) * w.price
	}
}

// hold counts what is set aside until it expires. What has been drawn of a reservation goes on being drawn at the same pace; the
// rest comes back.
func (g *grid) hold(reservations []quota.Reservation) {
	for _, r := range reservations {
		expires := r.ExpiresAt.UnixMicro()
		g.holds = append(g.holds, quota.Hold{Units: r.Left, ExpiresAt: expires})
		for i := range g.points {
			if g.points[i].at >= expires {
				g.points[i].draws += r.Left - comesBack(r, g.at)
				break
			}
			g.points[i].held += r.Left
		}
	}
}

// comesBack is how many units of a reservation nobody will have drawn when it expires.
func comesBack(r quota.Reservation, now time.Time) int64 {
	age, left := now.Sub(r.CreatedAt), r.ExpiresAt.Sub(now)
	if age <= 0 || left <= 0 {
		return r.Left
	}
	return r.Left - min(r.Left, int64(float64(r.Drawn)*left.Seconds()/age.Seconds()))
}

// gauge lays a limit along the grid. What leaves a shared window soon counts as gone: the charges of a run are a little apart.
func (g *grid) gauge(l quota.Limit) gauge {
	n, soon := len(g.points), int64(0)
	if shared(l) {
		soon = share.Soon.Microseconds()
	}
	out := gauge{limit: l, pace: l.Pace != nil, cap: make([]int64, n), used: make([]int64, n), from: make([]int, n)}
	var start, end int64
	for i, p := range g.points {
		now := time.UnixMicro(p.at)
		out.cap[i] = l.CapAt(now, false, false)
		after := p.at - l.Window.Length.Microseconds()
		if i > 0 {
			after += soon
		}
		if l.Window.IsCalendar() {
			if i == 0 || p.at >= end {
				s, e := l.Window.Bounds(now)
				start, end = s.UnixMicro(), e.UnixMicro()
			}
			after = start - 1
		}
		out.used[i] = g.log.after(after)
		if i > 0 {
			out.from[i] = out.from[i-1]
		}
		for out.from[i] < i && g.points[out.from[i]].at <= after {
			out.from[i]++
		}
	}
	return out
}

// sums are the entries as running totals.
type sums struct {
	at, before []int64 // before: units of the entries up to and without this one
	total      int64
}

func newSums(entries []quota.Entry) sums {
	var s sums
	for _, e := range entries {
		s.add(e.At.UnixMicro(), e.Units)
	}
	return s
}

func (s *sums) add(at, units int64) {
	s.at, s.before = append(s.at, at), append(s.before, s.total)
	s.total += units
}

// after is the sum of the entries stamped after t.
func (s sums) after(t int64) int64 {
	i := s.first(t)
	if i == len(s.at) {
		return 0
	}
	return s.total - s.before[i]
}

// first is the index of the first entry after t.
func (s sums) first(t int64) int {
	return sort.Search(len(s.at), func(i int) bool { return s.at[i] > t })
}

// UsedAfter implements quota.Log.
func (s sums) UsedAfter(t int64) int64 { return s.after(t) }

// StampAt implements quota.Log.
func (s sums) StampAt(t, n int64) int64 {
	reached := s.before[s.first(t)] + n
	return s.at[sort.Search(len(s.at), func(i int) bool { return s.before[i] >= reached })-1]
}

// frees is when a unit comes free, now or later, if nobody spends anything; never if none does.
func (g *grid) frees() int64 {
	now, at := g.at.UnixMicro(), int64(0)
	holds := slices.DeleteFunc(slices.Clone(g.holds), func(h quota.Hold) bool { return h.ExpiresAt <= now })
	for _, l := range g.limits {
		s := quota.Standing{Limit: l.limit, Log: g.log, Holds: holds, Now: now}
		if w := l.limit.Window; w.IsCalendar() {
			start, end := w.Bounds(g.at)
			s.Start, s.End = start.UnixMicro(), end.UnixMicro()
		}
		at = max(at, s.Fits(1, l.limit.Cap(false)))
	}
	if at == quota.Never {
		return never
	}
	return at
}

// scheduled is what all runs take.
func (g *grid) scheduled() Work {
	var w Work
	for _, p := range g.points {
		for _, r := range p.runs {
			w.Runs, w.Pages, w.Units = w.Runs+1, w.Pages+int64(r.pages), w.Units+int64(r.pages)*r.price
		}
	}
	return w
}

// closed reports whether a limit allows nothing.
func (g *grid) closed() bool {
	return slices.ContainsFunc(g.limits, func(l gauge) bool { return l.limit.Cap(false) == 0 })
}
