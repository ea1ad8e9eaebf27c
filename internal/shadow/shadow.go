// Package shadow replays a log through a limit: what it would have refused, and what its window
// would hold. A charge that would have been refused does not count for later ones.
package shadow

import (
	"math"
	"sort"
	"time"

	"quotabudget/internal/quota"
)

// Limit is a limit in force from the first entry on. It applies the ledgers' arithmetic
// (quota.Standing) to another log.
type Limit struct {
	of    quota.Limit
	reset int64 // the known end of an anchored window

	stamps, totals []int64 // of admitted entries: Unix µs, and the running total
	gone           int64   // total before the first of them
	level, at      int64   // of a restoring window, at its newest entry
	start, end     int64   // calendar window of the last entry
}

// New returns a limit whose anchored window last ended at reset (zero for none), as the upstream
// reported. Earlier ends are not known, so before that the window slides.
func New(of quota.Limit, reset time.Time) *Limit {
	l := &Limit{of: of, end: math.MinInt64}
	if !reset.IsZero() {
		l.reset = reset.UnixMicro()
	}
	return l
}

// Admits reports whether a charge fits, and counts it if so. Entries come in the order of the
// log.
func (l *Limit) Admits(at time.Time, units int64) bool {
	st := l.standing(at)
	if st.Used()+units > l.of.Cap(false) {
		return false
	}
	l.count(st, units)
	return true
}

// Count counts an entry that no limit could have refused.
func (l *Limit) Count(at time.Time, units int64) { l.count(l.standing(at), units) }

// Used returns the units in the window.
func (l *Limit) Used(at time.Time) int64 { return l.standing(at).Used() }

func (l *Limit) standing(at time.Time) quota.Standing {
	st := quota.Standing{Limit: l.of, Log: l, Now: at.UnixMicro()}
	switch w := l.of.Window; {
	case w.IsCalendar():
		if st.Now >= l.end || st.Now < l.start {
			start, end := w.Bounds(at)
			l.start, l.end = start.UnixMicro(), end.UnixMicro()
		}
		st.Start, st.End = l.start, l.end
	case w.IsRestoring():
		st.Level = w.Restore.LevelAfter(l.level, st.Now-l.at)
	case w.Anchored && st.Now >= l.reset-w.Length.Microseconds():
		st.Reset = l.reset
	}
	return st
}

func (l *Limit) count(st quota.Standing, units int64) {
	if l.of.Window.IsRestoring() {
		_, den := l.of.Window.Restore.Terms()
		l.level, l.at = st.Level+units*den, st.Now
		return
	}
	l.forget(st.Now)
	total := l.total() + units
	l.stamps, l.totals = append(l.stamps, st.Now), append(l.totals, total)
}

// forget occasionally drops entries that can no longer count.
func (l *Limit) forget(now int64) {
	const often = 4096
	if len(l.stamps)%often != often-1 {
		return
	}
	if n := l.after(now - l.of.Reach().Microseconds()); n > 0 {
		l.gone = l.totals[n-1]
		l.stamps = append([]int64(nil), l.stamps[n:]...)
		l.totals = append([]int64(nil), l.totals[n:]...)
	}
}

// after returns the index of the first entry stamped after t.
func (l *Limit) after(t int64) int {
	return sort.Search(len(l.stamps), func(i int) bool { return l.stamps[i] > t })
}

func (l *Limit) total() int64 {
	if len(l.totals) == 0 {
		return l.gone
	}
	return l.totals[len(l.totals)-1]
}

// UsedAfter implements quota.UsedLog.
func (l *Limit) UsedAfter(t int64) int64 {
	if n := l.after(t); n > 0 {
		return l.total() - l.totals[n-1]
	}
	return l.total() - l.gone
}

// StampAt implements quota.UsedLog.
func (l *Limit) StampAt(t, n int64) int64 {
	base := l.total() - l.UsedAfter(t)
	i := sort.Search(len(l.totals), func(i int) bool { return l.totals[i] >= base+n })
	return l.stamps[i]
}
