package forecast

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sim"
)

// day is one simulated day.
type day struct {
	dry   int64     // when units were used up and later missing, or never
	rate  float64   // unscheduled, units per hour
	wants []float64 // unscheduled units by bin from now
	size  float64   // units per charge
	seed  uint64    // of the moments of the charges
}

// mostCharges is about how many charges a day is simulated with. If there are more, several are
// made at once.
const mostCharges = 1500

// stream is the charges of a day, at random moments in proportion to the demand.
type stream struct {
	wants []float64
	size  float64
	start int64
	bin   int
	sum   float64 // units wanted before the bin
	next  float64 // position of the next charge in sum
	at    int64   // never if there is none
	dice  *rand.Rand
}

func (o *outlook) stream(d day) *stream {
	size := d.size
	if d.size > 0 {
		size *= max(1, math.Ceil(d.rate*float64(len(d.wants))*bin.Hours()/d.size/mostCharges))
	}
	s := &stream{wants: d.wants, size: size, start: o.At.UnixMicro(), dice: thrower(d.seed)}
	s.advance()
	return s
}

func (s *stream) advance() {
	s.next += s.size * s.dice.ExpFloat64()
	for s.bin < len(s.wants) && s.sum+s.wants[s.bin] <= s.next {
		s.sum += s.wants[s.bin]
		s.bin++
	}
	s.at = never
	if s.bin < len(s.wants) {
		into := float64(s.bin) + (s.next-s.sum)/s.wants[s.bin]
		s.at = s.start + int64(into*float64(bin.Microseconds()))
	}
}

// trace collects the reported results of one day.
type trace struct {
	scheduled  Work
	lost       Work
	leftOut    Work // of lost, by the shares
	runs       []LostRun
	limit      string // limit that was short when the units were used up
	tightest   string // the tightest limit now
	opens      int64  // when units came free after that; 0 if they do not
	opensFirst int64  // when there were units first; 0 if there are none
}

// walker walks through one day.
type walker struct {
	*outlook
	play  *sim.Play
	dry   int64  // since when something is denied; never if nothing was
	empty int64  // since when no units are left; never while there are some
	short int64  // units denied since
	trace *trace // nil if only dry is wanted
	whole bool   // count every lost run as a denial, whatever loses it
}

// isEnough reports whether the units left now cover all runs and charges of a day. Such a day
// need not be simulated.
func (o *outlook) isEnough(d day) bool {
	rest, end := float64(o.now)-float64(o.wanted.Units+o.beyond), o.end.UnixMicro()
	if rest < d.rate*float64(len(d.wants))*bin.Hours() {
		return false // unlikely, and drawing the charges takes time
	}
	for s := o.stream(d); s.at < end && rest >= 0; s.advance() {
		rest -= s.size
	}
	return rest >= 0
}

// isSmooth reports whether a day with enough units loses nothing by a suspension, a throttle, a
// pace or shares. For shares the units must cover the window even if it is longer than the day.
func (o *outlook) isSmooth() bool {
	longer := func(l quota.Limit) bool {
		if !l.Window.IsCalendar() {
			return true
		}
		_, end := l.Window.Bounds(o.At)
		return !end.Equal(o.end)
	}
	return o.now > 0 && o.suspended == 0 && len(o.brakes) == 0 &&
		!slices.ContainsFunc(o.long, longer)
}

// play returns when the day runs dry.
func (o *outlook) play(d day, t *trace) int64 {
	if (t == nil || o.isSmooth()) && o.isEnough(d) {
		if t != nil {
			*t = trace{scheduled: o.wanted, opensFirst: o.At.UnixMicro()}
		}
		return never
	}
	w := walker{outlook: o, trace: t}
	return w.walk(d)
}

// suffices reports whether nothing is denied or lost in a day.
func (o *outlook) suffices(d day) bool {
	w := walker{outlook: o, whole: true}
	return o.now > 0 && w.walk(d) == never
}

// walk walks through the day: to its end if it is traced, otherwise until something is denied.
func (w *walker) walk(d day) int64 {
	w.play, w.dry, w.empty = w.course.Play(), never, never
	start, end, t := w.At.UnixMicro(), w.outlook.end.UnixMicro(), w.trace
	next, looks := w.stream(d), start
	w.look(start)
	for w.dry == never || t != nil {
		if t == nil && !w.whole {
			w.play.Skip(next.at)
		}
		at, runs := w.play.Next()
		if !runs || at > end {
			at, runs = end, false
		}
		if t != nil && looks <= min(at, next.at) && looks < end { // every minute
			w.look(looks)
			looks += time.Minute.Microseconds()
			continue
		}
		switch {
		case next.at <= at && next.at < end:
			at = next.at
			w.charge(at, int64(next.size), w.look(at))
			next.advance()
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

// left returns the units that a scheduled charge could take.
func (w *walker) left(at int64) int64 {
	if at < w.suspended {
		return 0
	}
	return w.play.Room(at)
}

// look records whether there are units at a moment, and returns how many.
func (w *walker) look(at int64) (left int64) {
	left = w.left(at)
	if left <= 0 {
		if w.empty == never {
			w.empty = at
		}
		if w.trace != nil && w.trace.tightest == "" {
			w.trace.tightest = w.play.Tightest(at)
		}
		return left
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
	return left
}

// charge makes an unscheduled charge, up to the units left.
func (w *walker) charge(at, units, left int64) {
	switch {
	case at < w.suspended:
	case units <= left:
		w.play.Take(at, units)
	default:
		w.denied(at, units, w.play.Tightest(at))
	}
}

// run plays the next run.
func (w *walker) run() {
	r := w.play.Run()
	waits := r.Limit == sim.ShareName || r.Limit == quota.Suspended ||
		slices.Contains(w.brakes, r.Limit)
	if r.Lost() && (w.whole || !waits) {
		w.denied(r.At, w.price(r), r.Limit)
	}
	if t := w.trace; t != nil {
		pages := w.course.Lanes[r.Lane].Pages
		t.scheduled = t.scheduled.and(Work{1, pages, w.takes(r, pages)})
		if r.Lost() {
			t.lose(r, w)
		}
	}
}

// price returns the units that must be left for a page of a run.
func (w *walker) price(r sim.Run) int64 { return w.course.Lanes[r.Lane].Price[0].Units }

// takes returns the units that pages of a run take.
func (w *walker) takes(r sim.Run, pages int64) int64 {
	return w.course.Lanes[r.Lane].Takes(w.Name, pages, nil)
}

// denied records a denial.
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
	work := Work{1, lost, w.takes(r, lost)}
	t.lost = t.lost.and(work)
	if r.Limit == sim.ShareName {
		t.leftOut = t.leftOut.and(work)
	}
	if len(t.runs) == 1000 { // there will be many more
		t.runs = slices.Grow(t.runs, int(w.wanted.Runs))
	}
	t.runs = append(t.runs, LostRun{w.course.Tick(r), r.Wanted, lost, r.Limit})
}
