package sim

import (
	"slices"
	"sort"

	"quotabudget/internal/quota"
)

var _ quota.UsedLog = (*log)(nil)

// log is the entries of one bucket, oldest first. It implements quota.UsedLog. Times are Unix
// microseconds.
type log struct {
	stamps []int64
	before []int64 // running total before the entry
	total  int64
	newest int64
}

func (l *log) add(at, units int64) {
	l.stamps = append(l.stamps, at)
	l.before = append(l.before, l.total)
	l.total += units
	l.newest = at
}

// full says whether there is no room for another entry, and grow doubles it.
func (l *log) full() bool { return len(l.stamps) == cap(l.stamps) }
func (l *log) grow() {
	l.stamps = slices.Grow(l.stamps, len(l.stamps)+1)
	l.before = slices.Grow(l.before, len(l.before)+1)
}

// forget drops the n oldest entries.
func (l *log) forget(n int) {
	l.stamps = l.stamps[:copy(l.stamps, l.stamps[n:])]
	l.before = l.before[:copy(l.before, l.before[n:])]
}

// since returns the units of the entries from index i on.
func (l *log) since(i int) int64 {
	if i == len(l.before) {
		return 0
	}
	return l.total - l.before[i]
}

// after returns the index of the first entry after t.
func (l *log) after(t int64) int {
	return sort.Search(len(l.stamps), func(i int) bool { return l.stamps[i] > t })
}

// UsedAfter implements quota.UsedLog.
func (l *log) UsedAfter(t int64) int64 { return l.since(l.after(t)) }

// StampAt implements quota.UsedLog.
func (l *log) StampAt(t, n int64) int64 {
	first := l.after(t)
	reached := l.before[first] + n
	found := sort.Search(len(l.stamps)-first,
		func(i int) bool { return l.upTo(first+i) >= reached })
	return l.stamps[first+found]
}

// upTo returns the running total including entry i.
func (l *log) upTo(i int) int64 {
	if i+1 < len(l.before) {
		return l.before[i+1]
	}
	return l.total
}
