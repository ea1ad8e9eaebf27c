package forecast

import (
	"math"

	"quotabudget/internal/quota"
)

// diary is what is told of one day in full.
type diary struct {
	lost       Work
	leftOut    Work // of that, by the shares
	runs       []LostRun
	limit      string // that was short when the units were gone
	opens      int64  // when units came free after that; 0 when they do not
	opensFirst int64  // when there were units for the first time; 0 when there are none
}

// walker goes along the grid with one day's unscheduled spending.
type walker struct {
	*grid
	spent   []int64    // until and with each point, beyond the entries there are
	lanes   []progress // of each lane
	wanted  int64      // units, of the ticks that were
	plain   bool       // so far each run has got all, and lanes know nothing of it
	cutOff  int        // charts
	dealt   *dealing   // the last one
	rations rations
	dry     int64  // since when something is denied; never when nothing was
	empty   int64  // since when no units are left; never while there are some
	short   int64  // units that were then denied
	diary   *diary // nil when only dry is asked for
	turn    []*want
}

// newWalker is one who stands at the beginning. A grid has one walker at a time.
func (g *grid) newWalker(d *diary) *walker {
	w := &walker{grid: g, spent: make([]int64, len(g.points)), lanes: g.progress, dry: never, empty: never, diary: d, plain: true}
	for i := range w.lanes {
		p := &w.lanes[i]
		*p = progress{served: math.MinInt64, at: p.at[:0], upto: p.upto[:0]}
		if at := g.laneLogs[i].at; len(at) > 0 {
			p.served = at[len(at)-1]
		}
	}
	return w
}

// walk returns the moment at which the day runs dry: when the units were gone that are then found missing.
func (g *grid) walk(o outcome, d *diary) int64 {
	w := g.newWalker(d)
	c := o.charges
	for i := range g.points {
		if i > 0 {
			w.spent[i] = w.spent[i-1]
		}
		p := &g.points[i]
		w.spent[i] += p.draws
		left := w.left(i)
		w.opens(i, left)
		if len(o.wants) > 0 {
			left = w.charges(i, left, &c, o.wants[p.bin]*p.part)
		}
		if len(p.runs) > 0 {
			left = w.runs(i, left)
		}
		if left <= 0 && w.empty == never {
			w.empty = p.at
		}
		if w.dry != never && d == nil {
			break
		}
	}
	return w.dry
}

// charges ask for what is wanted of unscheduled spending: not as it trickles, but in charges of the sizes seen.
func (w *walker) charges(i int, left int64, c *charges, wanted float64) int64 {
	c.wanted += wanted
	for ; c.wanted >= c.size; c.next() {
		if asked := int64(c.size); asked <= left {
			w.take(i, asked)
			left -= asked
		} else {
			w.denied(i, asked)
		}
	}
	return left
}

// left is how many units a scheduled charge could take at the point.
func (w *walker) left(i int) int64 {
	if w.points[i].at < w.suspended {
		return 0
	}
	return w.room(i, w.limits) - w.points[i].held
}

// room is what the tightest of the limits leaves.
func (w *walker) room(i int, limits []gauge) int64 {
	room := int64(math.MaxInt64 / 2)
	for j := range limits {
		l := &limits[j]
		room = min(room, l.cap[i]-l.used[i]-w.inside(i, l))
	}
	return room
}

// inside is how much of what this day has spent is in the limit's window at the point.
func (w *walker) inside(i int, l *gauge) int64 {
	if from := l.from[i]; from > 0 {
		return w.spent[i] - w.spent[from-1]
	}
	return w.spent[i]
}

func (w *walker) opens(i int, left int64) {
	if left <= 0 {
		return
	}
	w.empty = never
	if d := w.diary; d != nil {
		if d.opensFirst == 0 {
			d.opensFirst = w.points[i].at
		}
		if d.opens == 0 && w.dry != never && left >= w.short {
			d.opens = w.points[i].at
		}
	}
}

// take spends.
func (w *walker) take(i int, units int64) { w.spent[i] += units }

// denied notes that something was wanted in vain. What a suspension denies does not make the bucket dry.
func (w *walker) denied(i int, units int64) {
	at := w.points[i].at
	if w.dry != never || at < w.suspended {
		return
	}
	w.dry, w.short = min(at, w.empty), units
	if w.diary != nil {
		w.diary.limit = w.tightest(i, w.spent)
	}
}

// runs lets the runs of the point spend, and returns what is left.
func (w *walker) runs(i int, left int64) int64 {
	p := &w.points[i]
	if p.asked <= left && w.cutOff == 0 && len(w.brakes) == 0 && !w.dealAt(i) {
		w.take(i, p.asked)
		w.allDone(p)
		return left - p.asked
	}
	w.recall(i)
	if p.asked <= left && len(w.brakes) == 0 && !w.dealtToEach() { // each has what its share allows, whatever their order
		for j := range p.runs {
			left -= w.run(i, &p.runs[j], left)
		}
		return left
	}
	for rest := p.runs; len(rest) > 0; {
		w.turn = w.turn[:0]
		for len(rest) > 0 && (len(w.turn) == 0 || rest[0].At.Equal(w.turn[0].At)) {
			w.turn, rest = append(w.turn, &rest[0]), rest[1:]
		}
		w.stalest(w.turn)
		for _, r := range w.turn {
			left -= w.run(i, r, left)
		}
	}
	return left
}

// run lets a run spend as much as it may of what is left.
func (w *walker) run(i int, r *want, left int64) int64 {
	at := w.points[i].at
	wanted := w.lanes[r.lane].wanted(at, r.pages)
	if !w.admits(i, r) {
		w.lose(r, wanted, wanted, ShareName)
		w.done(r, at, wanted, 0)
		return 0
	}
	fit := min(wanted, int(max(left, 0)/r.price))
	got, brake := w.braked(i, r, fit)
	units := int64(got) * r.price
	w.take(i, units)
	switch {
	case got < fit:
		w.lose(r, wanted, wanted-got, brake)
	case got < wanted:
		w.denied(i, r.price)
		w.lose(r, wanted, wanted-got, w.shortOf(i))
	}
	w.done(r, at, wanted, got)
	return units
}

// braked is how many of so many pages the paces and throttles let pass, and which of them holds the others back.
func (w *walker) braked(i int, r *want, pages int) (got int, by string) {
	for j := range w.brakes {
		l := &w.brakes[j]
		if l.pace && w.unpaced(r.lane) {
			continue
		}
		if n := int(w.gap(i, l) / r.price); n < pages {
			pages, by = n, l.limit.Name()
		}
	}
	return pages, by
}

// shortOf names what denies a charge at the point.
func (w *walker) shortOf(i int) string {
	if w.points[i].at < w.suspended {
		return quota.Suspended
	}
	return w.tightest(i, w.spent)
}

func (w *walker) lose(r *want, wanted, lost int, limit string) {
	d := w.diary
	if d == nil {
		return
	}
	work := Work{1, int64(lost), int64(lost) * r.price}
	d.lost = d.lost.and(work)
	if limit == ShareName {
		d.leftOut = d.leftOut.and(work)
	}
	d.runs = append(d.runs, LostRun{r.Tick, wanted, lost, limit})
}

// now is how many units a scheduled charge could take now, suspended or not; less than 0 where people are in the headroom.
func (g *grid) now() int64 {
	w := walker{grid: g, spent: []int64{0}}
	return w.room(0, g.limits) - g.points[0].held
}

// tightest names the limit that leaves least at the point.
func (g *grid) tightest(i int, spent []int64) string {
	if spent == nil {
		spent = []int64{0}
	}
	w, least, name := walker{grid: g, spent: spent}, never, ""
	for j := range g.limits {
		l := &g.limits[j]
		if room := l.cap[i] - l.used[i] - w.inside(i, l); room < least {
			least, name = room, l.limit.Name()
		}
	}
	return name
}
