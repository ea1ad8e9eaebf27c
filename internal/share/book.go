package share

import (
	"math"
	"slices"
	"sort"
	"time"

	"quotabudget/internal/quota"
)

// Memory is how far back a decision looks: as far as every ledger does.
const Memory = quota.Retention

const (
	grain  = int64(quota.Grain / time.Microsecond)
	memory = int64(Memory / time.Microsecond)
	// forget is how old charges are dropped, if they are many. It leaves the longest window alone.
	forget = 40 * 24 * int64(time.Hour/time.Microsecond)
)

// Others are all who charge without being one of the lanes.
const Others = -1

// Book is what was charged to the shared bucket, and by whom. It is not safe for concurrent use.
type Book struct {
	rule   *Rule
	limits []division
	lanes  []laneBook
	all    record // of the lanes
	others record

	costs int64    // of one run of each lane
	unit  int64    // divides every lane's cost
	rates []demand // of the lanes, by the time between two ticks

	// Ticks are counted from one decision to the next.
	now     int64 // µs; those up to it have been counted
	soonest int64 // the first tick after now
	past    int64 // units that the ticks before now want, from some beginning on
	present int64 // units that the ticks at now want
	changes int64 // of the divisions
	slack   int64 // units that Others may be charged without making any lane idle for less long
}

// laneBook is what a book knows of one lane.
type laneBook struct {
	record
	every int64    // µs, the shortest time between two ticks
	next  int64    // the first tick after Book.now
	table *[]int64 // of ticks, next among them, of all copies
	place int      // of next
	ticks int64    // up to Book.now, from some beginning on
	turn  turn
	idle  int64 // µs; see Book.Idle

	last, first numbered        // the newest grain, and the first that turn counts
	known       map[int64]int64 // tick numbers by grain, of all copies
}

// mostKnown is how many grains are remembered, those of some weeks.
const mostKnown = 1 << 12

// numbered is a grain, and the number of the tick that its charges are for.
type numbered struct{ at, tick int64 }

// demand is units that are wanted every so often, in µs.
type demand struct{ every, units int64 }

// Charge records units of the shared bucket that a lane, or Others, was charged. Charges come in
// the order of time; at is in Unix microseconds.
func (b *Book) Charge(lane int, at, units int64) {
	if lane == Others {
		b.others.add(at, units)
		if b.slack -= units; b.slack < 0 {
			b.wake()
		}
		return
	}
	b.lanes[lane].add(at, units)
	b.lanes[lane].turn.until, b.lanes[lane].idle = math.MinInt64, math.MinInt64
	b.all.add(at, units)
}

// CopyOf makes b a copy of another book, in the memory that it has. Both remember the windows that
// either has divided, so they are not safe for concurrent use either.
func (b *Book) CopyOf(from *Book) *Book {
	lanes, limits, all, others := b.lanes, b.limits, b.all, b.others
	*b = *from
	b.limits = append(limits[:0], from.limits...)
	b.all.copyOf(all, from.all)
	b.others.copyOf(others, from.others)
	b.lanes = slices.Grow(lanes[:0], len(from.lanes))[:len(from.lanes)]
	for i := range b.lanes {
		memory := b.lanes[i].record
		b.lanes[i] = from.lanes[i]
		b.lanes[i].copyOf(memory, from.lanes[i].record)
	}
	return b
}

// moveTo counts the ticks up to a moment. A count begins again where the moment is long after the
// last one, or before it: clocks jump.
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

// pass counts the next tick of a lane and those up to now.
func (b *Book) pass(lane int) {
	l, r := &b.lanes[lane], &b.rule.Lanes[lane]
	passed, last := int64(1), l.next
	for b.advance(l, r); l.next <= b.now && b.now-l.next < 1000*l.every; b.advance(l, r) {
		passed, last = passed+1, l.next
	}
	if l.next <= b.now {
		passed += r.Count(before(l.next), before(b.now+1))
		last = l.next
		if r.Count(before(b.now), before(b.now+1)) > 0 {
			last = b.now
		}
		l.list(r, b.now)
	}
	l.ticks += passed
	cost := b.rule.Cost(lane)
	if last == b.now {
		b.present, passed = b.present+cost, passed-1
	}
	b.past += passed * cost
}

// mostListed is how many ticks are listed, of all lanes.
const mostListed = 1 << 18

// list begins a table with the first tick after a moment, and advance goes to the one after next.
func (l *laneBook) list(lane *Lane, after int64) {
	l.next = lane.Next(before(after + 1)).At.UnixMicro() // it may come a part of a µs after
	l.table, l.place = &[]int64{l.next}, 0
}

func (b *Book) advance(l *laneBook, lane *Lane) {
	if l.place++; l.place > mostListed/len(b.lanes) {
		l.list(lane, l.next)
		return
	}
	if l.place == len(*l.table) {
		*l.table = append(*l.table, lane.Next(before(l.next+1)).At.UnixMicro())
	}
	l.next = (*l.table)[l.place]
}

// restart begins to count at a moment.
func (b *Book) restart(at int64) {
	b.now, b.past, b.present, b.soonest = at, 0, 0, math.MaxInt64
	b.wake()
	for i := range b.lanes {
		l, r := &b.lanes[i], &b.rule.Lanes[i]
		l.ticks = 0
		l.list(r, at)
		l.turn.until, l.last.at, l.first.at = math.MinInt64, math.MinInt64, math.MinInt64
		l.known = make(map[int64]int64)
		b.present += r.Count(before(at), before(at+1)) * b.rule.Cost(i)
		b.soonest = min(b.soonest, l.next)
	}
	for i := range b.limits {
		b.limits[i].window, b.limits[i].windows = nil, make(map[int64]*window)
	}
}

// tickOf is the number, as in laneBook.ticks, of the tick that a charge in a grain is for: the
// first one in the grain, or the last one before it. It is kept in memo.
func (b *Book) tickOf(lane int, grainAt int64, memo *numbered) int64 {
	if memo.at == grainAt {
		return memo.tick
	}
	known := b.lanes[lane].known
	number, ok := known[grainAt]
	if !ok {
		number = b.countTo(lane, grainAt)
		if len(known) == mostKnown {
			clear(known)
		}
		known[grainAt] = number
	}
	*memo = numbered{grainAt, number}
	return number
}

func (b *Book) countTo(lane int, grainAt int64) int64 {
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

// record is units by grain, the oldest first.
type record struct {
	at, before []int64 // a grain's beginning, and the running total before it
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

// newest is the beginning of the newest grain.
func (r *record) newest() int64 { return r.at[len(r.at)-1] }

// drop forgets what is older than t, once that is half of all and the slices are full.
func (r *record) drop(t int64) {
	n := len(r.at)
	if n < 64 || n < cap(r.at) || r.at[n/2] >= t {
		return
	}
	r.at, r.before = slices.Clone(r.at[n/2:]), slices.Clone(r.before[n/2:])
}

// copyOf makes r a copy of another record, in the memory of one that is no longer needed.
func (r *record) copyOf(memory, from record) {
	*r = from
	r.at, r.before = append(memory.at[:0], from.at...), append(memory.before[:0], from.before...)
}

// from is the index of the first grain that begins at t or later, to the grain. It is mostly near
// the end, where the search begins.
func (r *record) from(t int64) int {
	t = floorGrain(t)
	low, high := len(r.at)-1, len(r.at) // low is before t, high is not
	for step := 1; low >= 0 && r.at[low] >= t; step *= 2 {
		low, high = low-step, low
	}
	low = max(low, -1)
	return low + 1 + sort.Search(high-low-1, func(i int) bool { return r.at[low+1+i] >= t })
}

// since is the units charged from t on, to the grain.
func (r *record) since(t int64, memo *mark) int64 {
	if t = floorGrain(t); !memo.known || memo.at != t {
		i := r.from(t)
		if i == len(r.at) {
			return 0
		}
		*memo = mark{t, r.before[i], true}
	}
	return r.total - memo.before
}

// mark remembers the running total before a grain.
type mark struct {
	at, before int64
	known      bool
}
