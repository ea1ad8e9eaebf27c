package share

import (
	"math"
	"slices"
	"sort"
	"time"
)

const (
	// Grain is the precision with which a book knows when units were charged.
	Grain = 10 * time.Minute
	// Memory is how far back a decision looks: as far as every ledger does.
	Memory = 72 * time.Hour
)

const (
	grain  = int64(Grain / time.Microsecond)
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
	next   []int64 // a lane's first tick after the last decision that asked for it
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
	b.lanes[lane].add(at, units)
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

// record is units by grain, the oldest first. The newest grain, which may still grow, stands apart.
type record struct {
	at, before []int64 // a grain's beginning, and the running total before it
	newest     int64
	total      int64
	known      bool // newest
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
	if !r.known || at > r.newest {
		r.drop(at - forget)
		r.at, r.before = append(r.at, at), append(r.before, r.total)
		r.newest, r.known = at, true
	}
	r.total += units
}

// drop forgets what is older than t, once that is half of all and the slices are full.
func (r *record) drop(t int64) {
	n := len(r.at)
	if n < 64 || n < cap(r.at) || r.at[n/2] >= t {
		return
	}
	r.at, r.before = slices.Clone(r.at[n/2:]), slices.Clone(r.before[n/2:])
}

// fork makes the next grain go to slices of the record's own.
func (r *record) fork() { r.at, r.before = slices.Clip(r.at), slices.Clip(r.before) }

// since is the units charged from t on, to the grain, and the beginning of the first such grain.
func (r *record) since(t int64) (units, first int64) {
	t = floorGrain(t)
	i := sort.Search(len(r.at), func(i int) bool { return r.at[i] >= t })
	if i == len(r.at) {
		return 0, math.MaxInt64
	}
	return r.total - r.before[i], r.at[i]
}
