package share

import (
	"math"
	"slices"
	"sort"
	"time"

	"quotabudget/internal/quota"
)

// Memory is how far back a decision looks: as far as every ledger keeps entries.
const Memory = quota.Retention

const (
	grain  = int64(quota.Grain / time.Microsecond)
	memory = int64(Memory / time.Microsecond)
	// maxGrains is more than the number of grains in the longest window.
	maxGrains = 40 * 144
)

// Others is the lane index of charges that no lane made.
const Others = -1

// Book records the charges to the shared bucket by lane. It is not safe for concurrent use.
type Book struct {
	rule   *Rule
	limits []division
	lanes  []laneBook
	all    record // charges of all lanes
	others record

	costs int64 // one run of each lane, in units
	unit  int64 // a divisor of every lane's cost

	// Ticks are counted from one decision to the next.
	now     int64 // µs; ticks up to then are counted
	past    int64 // units wanted by the ticks before now, from an arbitrary start
	present int64 // units wanted by the ticks at now
	changes int64 // number of changed divisions so far
}

type laneBook struct {
	record
	cost  int64 // of a run, in units
	every int64 // µs; the shortest time between two ticks
	next  int64 // µs; the first tick after Book.now
	ticks int64 // ticks up to Book.now, from an arbitrary start
	turn  turn
}

// Charge records units of the shared bucket charged by a lane or by Others. Charges are in order
// of time; at is in Unix microseconds.
func (b *Book) Charge(lane int, at, units int64) {
	if lane == Others {
		b.others.add(at, units)
		return
	}
	b.lanes[lane].add(at, units)
	b.lanes[lane].turn.until = math.MinInt64
	b.all.add(at, units)
	for i := range b.limits { // the first run of a day begins its window
		if w := b.limits[i].window; w != nil && w.until == w.begin+1 {
			b.limits[i].window = nil
		}
	}
}

// moveTo counts the ticks up to a moment. The count starts over if the clock jumped: if the
// moment is before the last one or long after it.
func (b *Book) moveTo(at int64) {
	if at < b.now || at > b.now+memory {
		b.now, b.past, b.present = at, 0, 0
		for i := range b.lanes {
			b.lanes[i].next, b.lanes[i].ticks, b.lanes[i].turn.until = at, 0, math.MinInt64
		}
		for i := range b.limits {
			b.limits[i].window = nil
		}
	}
	if at > b.now {
		b.past, b.present, b.now = b.past+b.present, 0, at
	}
	for i := range b.lanes {
		l, lane := &b.lanes[i], &b.rule.Lanes[i]
		if l.next > at {
			continue
		}
		now := lane.Count(before(at), before(at+1))
		ticks := lane.Count(before(l.next), before(at+1))
		l.ticks += ticks
		b.past, b.present = b.past+(ticks-now)*l.cost, b.present+now*l.cost
		l.next = lane.Next(before(at + 1)).At.UnixMicro()
	}
}

// tickOf returns the number, as in laneBook.ticks, of the tick that the charges in a grain belong
// to: the first tick in the grain, or the last one before it.
func (b *Book) tickOf(lane int, grainAt int64) int64 {
	l := &b.rule.Lanes[lane]
	number := b.lanes[lane].ticks
	if grainAt <= b.now {
		number -= l.Count(before(grainAt), before(b.now+1))
	} else {
		number += l.Count(before(b.now+1), before(grainAt))
	}
	if l.Count(before(grainAt), before(grainAt+grain)) > 0 {
		number++
	}
	return number
}

// record holds running totals of units by grain, oldest first.
type record struct {
	at, before []int64 // each grain's start, and the total before it
	total      int64
}

func floorGrain(at int64) int64 {
	if m := at % grain; m < 0 {
		return at - m - grain
	} else {
		return at - m
	}
}

func (r *record) add(at, units int64) {
	at = floorGrain(at)
	if n := len(r.at); n == 0 || at > r.newest() {
		if n > 2*maxGrains {
			r.at = slices.Delete(r.at, 0, maxGrains)
			r.before = slices.Delete(r.before, 0, maxGrains)
		}
		r.at, r.before = append(r.at, at), append(r.before, r.total)
	}
	r.total += units
}

func (r *record) newest() int64 { return r.at[len(r.at)-1] }

// from returns the index of the first grain that begins at t or later.
func (r *record) from(t int64) int {
	t = floorGrain(t)
	return sort.Search(len(r.at), func(i int) bool { return r.at[i] >= t })
}

// since returns the units charged from t on, to the grain.
func (r *record) since(t int64) int64 {
	if i := r.from(t); i < len(r.at) {
		return r.total - r.before[i]
	}
	return 0
}
