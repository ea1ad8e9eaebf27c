package plan

import (
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// maxSteps bounds the moments at which unscheduled spending is charged in one play. The moments
// are at least a minute apart.
const maxSteps = 1500

// ending is when a play ends.
type ending int

const (
	atReset  ending = iota // play everything
	whenDry                // at the first denial of a run or of unscheduled spending
	whenLost               // at the first denial, or the first run that loses a page
)

type playResult struct {
	dry        int64 // when the units were used up, if some were missing later; else never
	scheduled  Work
	lost       Work
	leftOut    Work   // lost runs that their shares left out
	runs       []Run  // runs that lose pages
	limit      string // limit that was short when the units were used up
	tightest   string // the tightest limit now
	opens      int64  // when units came free after dry; 0 if never
	opensFirst int64  // when there were first units; 0 if never
}

// play plays the time until the reset with a load.
func (o *outlook) play(l load, end ending) playResult {
	w := walker{outlook: o, play: o.plan.Play(), ending: end, empty: never}
	w.result.dry = never
	w.walk(l)
	return w.result
}

// suffices reports whether nothing is denied or lost with a load.
func (o *outlook) suffices(l load) bool {
	return o.now > 0 && o.play(l, whenLost).dry == never
}

type walker struct {
	*outlook
	play   *Play
	ending ending
	result playResult
	empty  int64 // start of the time without units; never while units are left
	short  int64 // units denied since empty
}

// walk plays runs and charges in the order of time.
func (w *walker) walk(l load) {
	start, end := w.At.UnixMicro(), w.end.UnixMicro()
	step := max(time.Minute.Microseconds(), (end-start)/maxSteps)
	w.look(start)
	owed := 0.0
	for at := start; at < end && !w.ended(); at += step {
		until := min(at+step, end)
		for run, ok := w.play.Next(); ok && run < until && !w.ended(); run, ok = w.play.Next() {
			w.look(run)
			w.run()
			w.look(run)
		}
		owed += l.between(at-start, until-start)
		if units := math.Floor(owed); units >= 1 && units >= w.size && !w.ended() {
			owed -= units
			w.charge(until-1, int64(units))
		}
		w.look(until - 1)
	}
}

// between returns the units between two moments, in µs from now.
func (l load) between(from, to int64) (units float64) {
	length := bin.Microseconds()
	for i := from / length; i*length < to && i < int64(len(l)); i++ {
		inside := min(to, (i+1)*length) - max(from, i*length)
		units += l[i] * float64(inside) / float64(length)
	}
	return units
}

func (w *walker) ended() bool { return w.ending != atReset && w.result.dry != never }

// left returns the units that a scheduled charge could take, and the limit that leaves the least.
func (w *walker) left(at int64) (units int64, limit string) {
	units, limit = w.play.Room(at)
	if at < w.suspended {
		units = 0
	}
	return units, limit
}

// look records whether units are left at a moment.
func (w *walker) look(at int64) {
	left, limit := w.left(at)
	r := &w.result
	if left <= 0 {
		w.empty = min(w.empty, at)
		if r.tightest == "" {
			r.tightest = limit
		}
		return
	}
	w.empty = never
	if r.opensFirst == 0 {
		r.opensFirst = at
	}
	if r.opens == 0 && r.dry != never && left >= w.short {
		r.opens = at
	}
}

// charge makes an unscheduled charge, up to the units left.
func (w *walker) charge(at, units int64) {
	left, limit := w.left(at)
	switch {
	case at < w.suspended:
	case units <= left:
		w.play.Take(at, units)
	default:
		w.denied(at, units, limit)
	}
}

func (w *walker) run() {
	run := w.play.Run()
	l := &w.plan.Lanes[run.Lane]
	waits := run.Limit == ShareName || run.Limit == quota.Suspended ||
		slices.Contains(w.brakes, run.Limit)
	if run.Lost() && (w.ending == whenLost || !waits) {
		w.denied(run.At.UnixMicro(), l.Price[0].Units, run.Limit)
	}
	r := &w.result
	r.scheduled = r.scheduled.and(Work{1, l.Pages, l.Takes(w.Name, l.Pages, nil)})
	if !run.Lost() {
		return
	}
	work := Work{1, run.Missing(), l.Takes(w.Name, run.Missing(), nil)}
	r.lost = r.lost.and(work)
	if run.Limit == ShareName {
		r.leftOut = r.leftOut.and(work)
	}
	r.runs = append(r.runs, run)
}

func (w *walker) denied(at, units int64, limit string) {
	if w.result.dry == never {
		w.result.dry, w.short, w.result.limit = min(at, w.empty), units, limit
	}
}
