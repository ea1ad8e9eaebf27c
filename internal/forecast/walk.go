package forecast

import "math"

// diary is what is told of one day in full.
type diary struct {
	lost       Work
	runs       []LostRun
	limit      string // that was short when the units were gone
	opens      int64  // when units came free after that; 0 when they do not
	opensFirst int64  // when there were units for the first time; 0 when there are none
}

// walker goes along the grid with one day's unscheduled spending.
type walker struct {
	*grid
	spent []int64 // until and with each point, beyond the entries there are
	dry   int64   // since when something is denied; never when nothing was
	empty int64   // since when no units are left; never while there are some
	short int64   // units that were then denied
	diary *diary  // nil when only dry is asked for
}

// walk returns the moment at which the day runs dry: when the units were gone that are then found missing.
func (g *grid) walk(o outcome, d *diary) int64 {
	w := walker{grid: g, spent: make([]int64, len(g.points)), dry: never, empty: never, diary: d}
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
		left = w.runs(i, left)
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
	if asked := w.points[i].asked; asked <= left && len(w.paces) == 0 {
		w.take(i, asked)
		return left - asked
	}
	for _, r := range w.points[i].runs {
		asked := int64(r.pages)
		pages := min(asked, max(left, 0)/r.price)
		short := pages < asked
		if len(w.paces) > 0 {
			pages = min(pages, max(w.room(i, w.paces)-w.points[i].held, 0)/r.price)
		}
		w.take(i, pages*r.price)
		left -= pages * r.price
		if short {
			w.denied(i, r.price)
			w.lose(r, asked-pages)
		}
	}
	return left
}

func (w *walker) lose(r want, pages int64) {
	if d := w.diary; d != nil {
		d.lost.Runs, d.lost.Pages, d.lost.Units = d.lost.Runs+1, d.lost.Pages+pages, d.lost.Units+pages*r.price
		d.runs = append(d.runs, LostRun{r.Tick, r.pages, int(pages)})
	}
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
