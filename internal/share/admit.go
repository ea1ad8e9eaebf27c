package share

import (
	"fmt"
	"math"
	"time"
)

// Decision says whether a lane runs at a tick, and why.
type Decision struct {
	Run   bool
	Short bool // false: enough is left for every tick to come, and nothing is shared
	Lane  *Lane

	Interval time.Duration // between two runs; 0: the lane gets all that it wants; negative: none
	Due      time.Time     // when its next run is due; zero: at once
	Free     int64         // units that are left now
	Cost     int64         // units of its run
	Ahead    int64         // units of the runs of other lanes that go first
	Early    bool          // the lanes together have used what the day has for them until now
}

// Soon is what counts as free already: the charges of a run are a little apart, and so are those
// that leave a sliding window a day later.
const Soon = time.Second

// Admit decides whether a lane runs at a tick of it. left says how many units one of Rule.Limits
// leaves scheduled charges Soon. at is in Unix microseconds, and no earlier than what was charged.
//
// A tick that was begun before and is only resumed has been decided: do not ask again.
func (b *Book) Admit(lane int, at int64, left func(limit int) int64) Decision {
	d := Decision{Run: true, Lane: &b.rule.Lanes[lane], Cost: b.rule.Cost(lane)}
	d.Free = math.MaxInt64
	for i := range b.limits {
		l := &b.limits[i]
		units := left(l.index)
		d.Free = min(d.Free, units)
		d.Short = b.short(l, at, units) || d.Short
	}
	if !d.Short || d.Cost == 0 {
		return d
	}
	turn := b.turnOf(lane)
	d.Interval = time.Duration(turn.interval) * time.Microsecond / parts * time.Duration(turn.every)
	if turn.interval == never {
		d.Interval = -1
	} else if turn.class != unknown {
		d.Due = moment(at + turn.wait())
	}
	isDue := turn.due <= turn.now+parts // or will be before the next tick
	room := b.room(turn, d.Cost, at, at)
	if !isDue || d.Cost > room {
		d.Run, d.Early = false, isDue && d.Cost <= d.Free
		if !isDue {
			b.rest(lane, at)
		}
		return d
	}
	if room < b.costs { // not enough for one run of each
		units, tick := b.ahead(lane, turn)
		if d.Cost+units > b.room(turn, d.Cost, at, tick) {
			d.Run, d.Ahead = false, units
		}
	}
	return d
}

// short reports whether a limit leaves too little for all ticks to come. It divides what there is.
func (b *Book) short(d *division, at, left int64) bool {
	d.left = left
	enough := b.plenty(d, at, left)
	if !enough {
		b.moveTo(at)
		b.open(d)
		enough = !d.window.slides && d.window.wanted-b.past <= left
	}
	if enough != d.enough {
		d.enough = enough
		b.changes++
	}
	if enough {
		return false
	}
	b.divide(d, at, left)
	return d.cut.short
}

// plenty reports whether enough is left for more ticks than can come until the reset, or in one
// length of a sliding window. Nobody has to count them then.
func (b *Book) plenty(d *division, at, left int64) bool {
	ahead := d.limit.Window.Length.Microseconds()
	if d.limit.Window.IsCalendar() {
		_, end := d.day(at)
		ahead = end - at
	}
	for _, r := range b.rates {
		if left -= min(mulDiv(ahead/r.every+2, r.units, 1), never/4); left < 0 {
			return false
		}
	}
	return true
}

// room is the units that are free at a moment until, for a run of so many units at the moment at,
// when nobody else charges any between them. A lane that is only in turn keeps to the even line of
// the calendar day too, from nothing at the first tick to all that the lanes may take after the
// last, and is one run ahead of it at most: what is made up for in the morning would be missing at
// night.
func (b *Book) room(t *turn, cost, at, until int64) int64 {
	units := int64(math.MaxInt64)
	for i := range b.limits {
		l := &b.limits[i]
		w := l.window
		if l.enough {
			units = min(units, l.left)
			continue
		}
		if !w.slides {
			units = min(units, l.left)
			if t.class == inTurn && t.interval >= parts*3/2 {
				spent := b.all.since(w.start, &l.lanes)
				line := mulDiv(l.capacity, w.wants-(w.wanted-b.past), max(w.wants, 1))
				units = min(units, max(cost, b.costs/2)+line-spent)
			}
			continue
		}
		units = min(units, l.left+b.leaving(floorGrain(at-w.length)+grain, until-w.length+grain))
	}
	return units
}

// leaving is the units of whole grains between two moments.
func (b *Book) leaving(from, to int64) (units int64) {
	if floorGrain(to) <= from {
		return 0
	}
	for _, r := range [...]*record{&b.all, &b.others} {
		units += r.since(from, new(mark)) - r.since(to, new(mark))
	}
	return units
}

// String is the reason in words.
func (d Decision) String() string {
	if d.Run {
		return d.Lane.Title() + " runs: " + d.reason()
	}
	return d.Lane.Title() + " is left out: " + d.reason()
}

func (d Decision) reason() string {
	every, due := d.Interval.Round(time.Second), d.Due.UTC().Format("15:04 MST")
	switch {
	case !d.Short:
		return "enough is left for every tick to come"
	case d.Run && d.Interval == 0:
		return "it gets all that it wants" + d.claim()
	case d.Run && d.Due.IsZero():
		return "it has not run for days, or ever"
	case d.Run:
		return fmt.Sprintf("a run every %s, this one due at %s", every, due) + d.claim()
	case d.Interval < 0 && d.Cost <= d.Free:
		return "the others need all units" + d.claim()
	case d.Ahead > 0:
		return fmt.Sprintf("%d units are left, and lanes that have waited longer need %d of them",
			d.Free, d.Ahead) + d.claim()
	case d.Early:
		return "the lanes together have used their units of the day until now" + d.claim()
	case d.Cost > d.Free:
		return fmt.Sprintf("a run takes %d units, and %d are left now", d.Cost, d.Free)
	}
	return fmt.Sprintf("a run every %s, the next due at %s", every, due) + d.claim()
}

// claim is what its share follows from.
func (d Decision) claim() string {
	s := fmt.Sprintf(" (weight %d", d.Lane.Weight)
	if d.Lane.Priority != 0 {
		s += fmt.Sprintf(", priority %d", d.Lane.Priority)
	}
	if d.Lane.Floor != 0 {
		s += fmt.Sprintf(", floor %d", d.Lane.Floor)
	}
	return s + ")"
}
