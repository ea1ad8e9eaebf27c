package share

import (
	"math"
	"slices"
	"sort"
	"time"

	"quotabudget/internal/quota"
)

// Memory is how far back a decision looks, which is as far as every ledger keeps entries.
const Memory = quota.Retention

const (
	grain  = int64(quota.Grain / time.Microsecond)
	memory = int64(Memory / time.Microsecond)
	// forget is the age at which charges may be dropped. It exceeds the longest window.
	forget = 40 * 24 * int64(time.Hour/time.Microsecond)
)

// Others stands for all charges that no lane made.
const Others = -1

// Book records the charges to the shared bucket by lane. It is not safe for concurrent use.
type Book struct {
	rule   *Rule
	limits []division
	lanes  []laneBook
	all    record // charges of all lanes
	others record

	costs int64    // one run of each lane, in units
	unit  int64    // a divisor of every lane's cost
	rates []demand // the lanes' costs by the time between two ticks

	// Ticks are counted from one decision to the next.
	now     int64 // µs; ticks up to then are counted
	soonest int64 // µs; the first tick after now
	past    int64 // units wanted by the ticks before now, from an arbitrary start
	present int64 // units wanted by the ticks at now
	changes int64 // number of changed divisions so far
}

// laneBook is a book's record of one lane.
type laneBook struct {
	record
	every int64 // µs; the shortest time between two ticks
	next  int64 // µs; the first tick after Book.now
	ticks int64 // ticks up to Book.now, from an arbitrary start
	turn  turn
}

// demand is a number of units wanted once per interval.
type demand struct{ every, units int64 }

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
		b.restart(at)
		return
	}
	if at > b.now {
		b.past, b.present, b.now = b.past+b.present, 0, at
	}
	if at < b.soonest {
		return
	}
	b.soonest = math.MaxInt64
	for i := range b.lanes {
		if l := &b.lanes[i]; l.next <= at {
			b.pass(i)
		}
		b.soonest = min(b.soonest, b.lanes[i].next)
	}
}

// pass counts the next tick of a lane and any others up to now.
func (b *Book) pass(lane int) {
	l, r := &b.lanes[lane], &b.rule.Lanes[lane]
	passed, last := int64(1), l.next
	for l.skip(r, l.next); l.next <= b.now && b.now-l.next < 1000*l.every; l.skip(r, l.next) {
		passed, last = passed+1, l.next
	}
	if l.next <= b.now {
		passed += r.Count(before(l.next), before(b.now+1))
		last = l.next
		if r.Count(before(b.now), before(b.now+1)) > 0 {
			last = b.now
		}
		l.skip(r, b.now)
	}
	l.ticks += passed
	cost := b.rule.Cost(lane)
	if last == b.now {
		b.present, passed = b.present+cost, passed-1
	}
	b.past += passed * cost
}

// skip moves to the first tick after a moment. It may be a fraction of a µs after it.
func (l *laneBook) skip(lane *Lane, after int64) {
	l.next = lane.Next(before(after + 1)).At.UnixMicro()
}

// restart starts the counts over at a moment.
func (b *Book) restart(at int64) {
	b.now, b.past, b.present, b.soonest = at, 0, 0, math.MaxInt64
	for i := range b.lanes {
		l, r := &b.lanes[i], &b.rule.Lanes[i]
		l.ticks = 0
		l.skip(r, at)
		l.turn.until = math.MinInt64
		b.present += r.Count(before(at), before(at+1)) * b.rule.Cost(i)
		b.soonest = min(b.soonest, l.next)
	}
	for i := range b.limits {
		b.limits[i].window = nil
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
	if len(r.at) == 0 || at > r.newest() {
		r.drop(at - forget)
		r.at, r.before = append(r.at, at), append(r.before, r.total)
	}
	r.total += units
}

// newest returns the start of the newest grain.
func (r *record) newest() int64 { return r.at[len(r.at)-1] }

// drop removes charges older than t, once they are half of all and the slices are full.
func (r *record) drop(t int64) {
	n := len(r.at)
	if n < 64 || n < cap(r.at) || r.at[n/2] >= t {
		return
	}
	r.at, r.before = slices.Clone(r.at[n/2:]), slices.Clone(r.before[n/2:])
}

// from returns the index of the first grain that begins at t or later. The search starts at the
// end, because the result is usually near it.
func (r *record) from(t int64) int {
	t = floorGrain(t)
	low, high := len(r.at)-1, len(r.at) // low is before t, high is not
	for step := 1; low >= 0 && r.at[low] >= t; step *= 2 {
		low, high = low-step, low
	}
	low = max(low, -1)
	return low + 1 + sort.Search(high-low-1, func(i int) bool { return r.at[low+1+i] >= t })
}

// since returns the units charged from t on, to the grain.
func (r *record) since(t int64) int64 {
	if i := r.from(t); i < len(r.at) {
		return r.total - r.before[i]
	}
	return 0
}
