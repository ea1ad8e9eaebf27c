package forecast

import (
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sim"
)

// day is one day that is played.
type day struct {
	dry     int64     // when the units were gone that were then found missing; never when none were
	rate    float64   // units an hour, unscheduled
	wants   []float64 // unscheduled units by bin from now
	charges charges   // in which they are asked for
}

// trace is what is told of one day in full.
type trace struct {
	scheduled  Work
	lost       Work
	leftOut    Work // of that, by the shares
	runs       []LostRun
	limit      string // that was short when the units were gone
	tightest   string // limit now
	opens      int64  // when units came free after that; 0 when they do not
	opensFirst int64  // when there were units for the first time; 0 when there are none
}

// walker goes through one day.
type walker struct {
	*outlook
	play  *sim.Play
	dry   int64  // since when something is denied; never when nothing was
	empty int64  // since when no units are left; never while there are some
	short int64  // units that were then denied
	trace *trace // nil when only dry is asked for
}

// play returns the moment at which the day runs dry.
func (o *outlook) play(d day, t *trace) int64 {
	w := walker{outlook: o, play: o.course.Play(), dry: never, empty: never, trace: t}
	start, end := o.At.UnixMicro(), o.end.UnixMicro()
	next, looks := d.charges.begin(o, d.wants), start
	w.look(start)
	for w.dry == never || t != nil {
		at, runs := w.play.Next()
		if !runs || at > end {
			at, runs = end, false
		}
		c := next.peek()
		if t != nil && looks <= min(at, c.at) && looks < end { // each minute, to see units come free
			w.look(looks)
			looks += time.Minute.Microseconds()
			continue
		}
		switch {
		case c.at <= at && c.at < end:
			w.look(c.at)
			w.charge(c)
			next.pop()
			at = c.at
		case runs:
			w.look(at)
			w.run()
		default:
			return w.dry
		}
		if w.empty == never && w.left(at) <= 0 {
			w.empty = at
		}
	}
	return w.dry
}

// left is how many units a scheduled charge could take.
func (w *walker) left(at int64) int64 {
	if at < w.suspended {
		return 0
	}
	return w.play.Room(at)
}

// look notes whether there are units at a moment.
func (w *walker) look(at int64) {
	left := w.left(at)
	if left <= 0 {
		if w.empty == never {
			w.empty = at
		}
		if w.trace != nil && w.trace.tightest == "" {
			w.trace.tightest = w.play.Tightest(at)
		}
		return
	}
	w.empty = never
	if t := w.trace; t != nil {
		if t.opensFirst == 0 {
			t.opensFirst = at
		}
		if t.opens == 0 && w.dry != never && left >= w.short {
			t.opens = at
		}
	}
}

// charge asks for units that nobody announced.
func (w *walker) charge(c charge) {
	if c.drawn {
		w.play.Take(c.at, c.units)
	} else if c.at < w.suspended {
		return
	} else if !w.play.Charge(c.at, c.units) {
		w.denied(c.at, c.units, w.play.Tightest(c.at))
	}
}

// run plays the next run.
func (w *walker) run() {
	r := w.play.Run()
	if r.Lost() && r.Limit != sim.ShareName && r.Limit != quota.Suspended && !slices.Contains(w.brakes, r.Limit) {
		w.denied(r.At, w.Price, r.Limit)
	}
	if t := w.trace; t != nil {
		pages := w.Lanes[r.Lane].Pages
		t.scheduled = t.scheduled.and(Work{1, pages, pages * w.Price})
		if r.Lost() {
			t.lose(r, w)
		}
	}
}

// denied notes that something was wanted in vain.
func (w *walker) denied(at, units int64, limit string) {
	if w.dry != never {
		return
	}
	w.dry, w.short = min(at, w.empty), units
	if w.trace != nil {
		w.trace.limit = limit
	}
}

func (t *trace) lose(r sim.Run, w *walker) {
	lost := r.Wanted - r.Pages
	work := Work{1, lost, lost * w.Price}
	t.lost = t.lost.and(work)
	if r.Limit == sim.ShareName {
		t.leftOut = t.leftOut.and(work)
	}
	t.runs = append(t.runs, LostRun{w.course.Tick(r), r.Wanted, lost, r.Limit})
}
