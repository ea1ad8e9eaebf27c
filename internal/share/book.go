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
	lanes  []record
	all    record // of the lanes
	others record
	next   []next  // of each lane
	every  []int64 // µs, the shortest between two ticks of each lane
	costs  int64   // of one run of each lane
	unit   int64   // divides every lane's cost
	limits []division
}

// Charge notes units of the shared bucket that a lane, or Others, was charged. Charges come in the
// order of time; at is in Unix microseconds.
func (b *Book) Charge(lane int, at, units int64) {
	if lane == Others {
		b.others.add(at, units)
		return
	}
	at = floorGrain(at)
	r := &b.lanes[lane]
	if r.add(at, units) {
		r.ticked[len(r.at)-1] = b.tickOf(lane, at)
	}
	b.all.add(at, units)
}

// Fork returns a copy that goes on by itself.
func (b *Book) Fork() *Book {
	c := *b
	c.lanes, c.next = slices.Clone(b.lanes), slices.Clone(b.next)
	for i := range c.lanes {
		c.lanes[i].fork()
	}
	c.all.fork()
	c.others.fork()
	c.limits = slices.Clone(b.limits)
	return &c
}

// next is a lane's first tick that has not come yet, and how many have, from some beginning.
type next struct {
	at    int64
	upto  int64 // until when they are counted
	count int64
}

// ticks is how many ticks of a lane have come by a moment.
func (b *Book) ticks(lane int, at int64) int64 {
	n, l := &b.next[lane], &b.rule.Lanes[lane]
	if far := floorGrain(at) - memory; n.upto < far { // a clock may jump by years
		n.upto, n.at = far, l.Next(moment(far)).At.UnixMicro()
	}
	if n.at <= at { // a tick may come a part of a microsecond after n.at
		n.count += l.Count(before(n.at), before(at+1))
		n.at = l.Next(before(at + 1)).At.UnixMicro()
	}
	n.upto = max(n.upto, at)
	return n.count
}

// tickOf is the number of the tick that a charge in a grain is for: the first one in the grain, or
// the last one before it.
func (b *Book) tickOf(lane int, grainAt int64) int64 {
	l := &b.rule.Lanes[lane]
	count := b.ticks(lane, grainAt-1)
	if upto := b.next[lane].upto; upto >= grainAt {
		count -= l.Count(before(grainAt), before(upto+1))
	}
	if l.Next(before(grainAt)).At.UnixMicro() < grainAt+grain {
		count++
	}
	return count
}

// record is units by grain, the oldest first.
type record struct {
	at, before []int64 // a grain's beginning, and the running total before it
	ticked     []int64 // the lane's ticks by then
	total      int64
}

func floorGrain(at int64) int64 {
	if m := at % grain; m < 0 {
		return at - m - grain
	} else {
		return at - m
	}
}

// add notes units, and reports whether they are the first of their grain.
func (r *record) add(at, units int64) bool {
	at = floorGrain(at)
	fresh := len(r.at) == 0 || at > r.newest()
	if fresh {
		r.drop(at - forget)
		r.at, r.before, r.ticked = append(r.at, at), append(r.before, r.total), append(r.ticked, 0)
	}
	r.total += units
	return fresh
}

// newest is the beginning of the newest grain.
func (r *record) newest() int64 { return r.at[len(r.at)-1] }

// drop forgets what is older than t, once that is half of all and the slices are full.
func (r *record) drop(t int64) {
	n := len(r.at)
	if n < 64 || n < cap(r.at) || r.at[n/2] >= t {
		return
	}
	r.at, r.before, r.ticked = slices.Clone(r.at[n/2:]), slices.Clone(r.before[n/2:]), slices.Clone(r.ticked[n/2:])
}

// fork makes the next grain go to slices of the record's own.
func (r *record) fork() {
	r.at, r.before, r.ticked = slices.Clip(r.at), slices.Clip(r.before), slices.Clip(r.ticked)
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

// since is the units charged from t on, to the grain, and the beginning of the first such grain.
func (r *record) since(t int64) (units, first int64) {
	i := r.from(t)
	if i == len(r.at) {
		return 0, math.MaxInt64
	}
	return r.total - r.before[i], r.at[i]
}
