package quota

import (
	"cmp"
	"slices"
	"sort"
)

// Times in this file are Unix microseconds of the ledger's clock.

// UsedLog is what deciding needs to ask of one bucket's log, newest entries included.
type UsedLog interface {
	// UsedAfter is the sum of the units of the entries stamped after t.
	UsedAfter(t int64) int64
	// StampAt is the stamp of the entry at which the units of the entries after t, summed from the
	// oldest, first reach n. n is at least 1 and at most UsedAfter(t).
	StampAt(t, n int64) int64
}

// Expiring is the units that one reservation still keeps set aside.
type Expiring struct {
	Units     int64
	ExpiresAt int64
}

// Never is the moment that does not come.
const Never = int64(1) << 62

// LapseSlack is the µs by which entries of holds that expire together may be stamped later: each
// needs a stamp of its own.
const LapseSlack = 1000

// Standing is one limit of a bucket at one moment: what Fits decides on.
type Standing struct {
	Limit Limit
	Log   UsedLog
	Holds []Expiring // unexpired ones of the bucket, in any order
	Now   int64      // max(clock, newest stamp + 1)
	Start int64      // calendar windows only: Start <= Now < End
	End   int64
	Reset int64 // anchored windows only: the last end that the upstream told, 0 for none
	Level int64 // restoring windows only, at Now: see Rate

	// Lapsing says that some of the holds become entries when they expire (LapseCharge).
	Lapsing bool
}

// after is the time after which entries count: an entry at t is inside iff t > after.
func (s Standing) after() int64 {
	w, length := s.Limit.Window, s.Limit.Window.Length.Microseconds()
	switch {
	case w.IsCalendar():
		return s.Start - 1
	case w.Anchored && s.Reset > s.Now: // the window began a length before its end
		return max(s.Now-length, s.Reset-length-1)
	case w.Anchored && s.Reset > 0:
		return max(s.Now-length, s.Reset-1)
	}
	return s.Now - length
}

// Used is the units charged in the window; of a restoring one the level, rounded up.
func (s Standing) Used() int64 {
	switch {
	case s.Limit.Window.Concurrent:
		return 0
	case s.Limit.Window.IsRestoring():
		_, den := s.Limit.Window.Restore.Terms()
		return (s.Level + den - 1) / den
	}
	return s.Log.UsedAfter(s.after())
}

// Held is the units set aside.
func (s Standing) Held() int64 {
	var held int64
	for _, h := range s.Holds {
		held += h.Units
	}
	return held
}

// frees is when the units of a hold come free that nobody settles. Where some become entries, all
// are taken to, and where an entry's end cannot be known now, the time is one that is surely late
// enough: mostly, calls are settled long before. An estimate is taken to be right, though its entry
// may turn out larger, as a settlement may.
func (s Standing) frees(expires int64) int64 {
	w := s.Limit.Window
	if !s.Lapsing || w.Concurrent {
		return expires
	}
	expires += LapseSlack
	switch {
	case w.IsCalendar() && expires < s.End:
		return s.End
	case w.IsCalendar():
		return expires + w.Longest().Microseconds()
	case w.IsRestoring(): // with all that is held, the bucket is restored by then
		num, den := w.Restore.Terms()
		return expires + (s.Level+s.Held()*den)/num + 1
	case w.Anchored && expires < s.Reset && s.Reset > s.Now:
		return s.Reset
	}
	return expires + w.Length.Microseconds()
}

// Fits is the earliest moment at which cost more units stay within limit: Now when they fit
// already, Never when they cannot. Holds lapse as they expire, and entries leave the window.
func (s Standing) Fits(cost, limit int64) int64 {
	if cost > limit {
		return Never
	}
	used := s.Used()
	need := used + s.Held() + cost - limit
	if need <= 0 {
		return s.Now
	}
	byExpiry := func(a, b Expiring) int { return cmp.Compare(a.ExpiresAt, b.ExpiresAt) }
	holds := slices.SortedFunc(slices.Values(s.Holds), byExpiry)
	// When the first i holds have lapsed, less has to leave the window: as i rises, its moment
	// rises and freed falls. The answer is where the two meet.
	needs := []int64{need}
	for _, h := range holds {
		needs = append(needs, needs[len(needs)-1]-h.Units)
	}
	since := func(i int) int64 {
		if i == 0 {
			return s.Now
		}
		return max(s.Now, s.frees(holds[i-1].ExpiresAt))
	}
	meet := sort.Search(len(holds), func(i int) bool { return since(i) >= s.freed(used, needs[i]) })
	best := max(since(meet), s.freed(used, needs[meet]))
	if meet > 0 {
		best = min(best, max(since(meet-1), s.freed(used, needs[meet-1])))
	}
	return best
}

// freed is when need of the used units will have left the window.
func (s Standing) freed(used, need int64) int64 {
	switch {
	case need <= 0:
		return s.Now
	case need > used:
		return Never
	case s.Limit.Window.IsCalendar():
		return s.End
	case s.Limit.Window.Anchored && s.Reset > s.Now:
		return s.Reset
	case s.Limit.Window.IsRestoring():
		num, den := s.Limit.Window.Restore.Terms()
		return s.Now + (s.Level-(used-need)*den+num-1)/num
	}
	return s.Log.StampAt(s.after(), need) + s.Limit.Window.Length.Microseconds()
}

// NextFree is when the next units come free, by an entry that leaves or a hold that lapses; 0 when
// there are none.
func (s Standing) NextFree() int64 {
	next := Never
	if used := s.Used(); used > 0 {
		next = s.freed(used, 1)
	}
	for _, h := range s.Holds {
		if h.Units > 0 {
			next = min(next, s.frees(h.ExpiresAt))
		}
	}
	if next == Never {
		return 0
	}
	return next
}

// Remaining is how many more units fit within limit now, at least 0.
func (s Standing) Remaining(limit int64) int64 { return max(0, limit-s.Used()-s.Held()) }
