package share

import (
	"fmt"
	"math"
	"time"
)

// Decision is whether a lane runs at a tick, and why.
type Decision struct {
	Run   bool
	Short bool // units are shared; false if enough is left for every coming tick
	Lane  *Lane

	Interval time.Duration // between two runs; 0: a run at each tick; negative: no run
	Due      time.Time     // when the lane's next run is due; zero: now
	Free     int64         // units left now
	Cost     int64         // units of the lane's run
	Ahead    int64         // units of the other lanes' runs that go first
	Early    bool          // the lanes together have already used their units of the day until now
}

// Soon is how far ahead units count as free. The charges of one run are a little apart, so they
// also leave a sliding window a little apart.
const Soon = time.Second

// Admit decides whether a lane runs at its tick. left returns the units that a limit of
// Rule.Limits leaves for scheduled charges Soon. at is in Unix microseconds, and not before the
// latest charge.
//
// Do not call it again for a tick that has begun and is only resumed.
func (b *Book) Admit(lane int, at int64, left func(limit int) int64) Decision {
	d := Decision{Run: true, Lane: &b.rule.Lanes[lane], Cost: b.lanes[lane].cost}
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
	d.Interval = time.Duration(turn.interval) * time.Microsecond / tickParts *
		time.Duration(turn.every)
	if turn.interval == never {
		d.Interval = -1
	} else if turn.class != unknown {
		d.Due = moment(at + max(0, turn.due-turn.now)/tickParts*turn.every)
	}
	isDue := turn.due <= turn.now+tickParts // now or before the next tick
	room := b.room(turn, d.Cost, at, at)
	if !isDue || d.Cost > room {
		d.Run, d.Early = false, isDue && d.Cost <= d.Free
		return d
	}
	if room < b.costs { // not enough for one run of each lane
		units, tick := b.ahead(lane, turn)
		if d.Cost+units > b.room(turn, d.Cost, at, tick) {
			d.Run, d.Ahead = false, units
		}
	}
	return d
}

// room returns the units free at until for a run of cost units at the moment at, if nothing else
// is charged between. In a calendar window a lane of class inTurn must also keep to an even line:
// from nothing at the first tick to the lanes' whole capacity after the last, and at most one run
// ahead of it. Catching up in the morning would leave too little for the night.
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
			if t.class == inTurn && t.interval >= tickParts*3/2 {
				spent := b.all.since(w.start)
				line := mulDiv(l.capacity, w.wants-(w.wanted-b.past), max(w.wants, 1))
				units = min(units, max(cost, b.costs/2)+line-spent)
			}
			continue
		}
		units = min(units, l.left+b.leaving(floorGrain(at-w.length)+grain, until-w.length+grain))
	}
	return units
}

// leaving returns the units of the whole grains between two moments.
func (b *Book) leaving(from, to int64) (units int64) {
	if floorGrain(to) <= from {
		return 0
	}
	for _, r := range [...]*record{&b.all, &b.others} {
		units += r.since(from) - r.since(to)
	}
	return units
}

// String returns the decision and its reason in words.
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
		return "enough is left for every coming tick"
	case d.Run && d.Interval == 0:
		return "it gets all it wants" + d.claim()
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

// claim returns the settings that the lane's share depends on.
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
