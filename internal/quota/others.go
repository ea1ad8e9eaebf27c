package quota

import "slices"

// Others is what others used in one window of a bucket, as the upstream reported it. It counts in that
// window alone, as an entry stamped At would: what a response says of one limit says nothing of
// another.
type Others struct {
	Window string `json:"window"` // as Window.String writes it
	At     int64  `json:"at"`     // Unix µs
	Units  int64  `json:"units"`
	// Level is that of a restoring window at At, with these units: see Rate.
	Level int64 `json:"level,omitempty"`
}

// OthersIn picks what others used in a window; it has no units where nothing was reported.
func OthersIn(w Window, all []Others) (o Others) {
	if len(all) == 0 {
		return o
	}
	if i := slices.IndexFunc(all, func(o Others) bool { return o.Window == w.String() }); i >= 0 {
		o = all[i]
	}
	return o
}

// Replace returns all with o in the place of what was known of its window.
func (o Others) Replace(all []Others) []Others {
	all = slices.DeleteFunc(slices.Clone(all),
		func(old Others) bool { return old.Window == o.Window })
	return append(all, o)
}

// Valid reports whether a ledger can have written it.
func (o Others) Valid() bool {
	return o.At >= 0 && o.At <= MaxTotal && o.Units > 0 && o.Units <= MaxUnits && o.Level >= 0
}

// With returns the standing with what others used in its window. A pace is about our own spending, so
// nothing is added to it.
func (s Standing) With(o Others) Standing {
	w := s.Limit.Window
	switch {
	case o.Units == 0 || s.Limit.Pace != nil:
	case w.IsRestoring():
		s.Level = max(s.Level, o.levelAt(w.Restore, s.Log.UsedAfter(o.At-1), s.Now))
	default:
		s.Log = sharedLog{s.Log, o}
	}
	return s
}

// levelAt returns the level at n by what was reported and what was charged since.
func (o Others) levelAt(r Rate, charged, n int64) int64 {
	const most = Never
	_, den := r.Terms()
	level := min(most, o.Level+den*min(charged, (most-min(most, o.Level))/den))
	return r.LevelAfter(level, n-o.At)
}

// Reported returns what others used once so many more units are reported at s.Now. own is the same
// standing without what others used.
func (s Standing) Reported(own Standing, units int64) Others {
	w := s.Limit.Window
	o := Others{Window: w.String(), At: s.Now, Units: s.Used() - own.Used() + units}
	if w.IsRestoring() {
		_, den := w.Restore.Terms()
		o.Level = s.Level + units*den
	}
	return o
}

// sharedLog is a log among whose entries is one of others.
type sharedLog struct {
	Log
	others Others
}

// UsedAfter implements Log.
func (l sharedLog) UsedAfter(t int64) int64 {
	used := l.Log.UsedAfter(t)
	if l.others.At > t {
		used += l.others.Units
	}
	return used
}

// StampAt implements Log.
func (l sharedLog) StampAt(t, n int64) int64 {
	if l.others.At <= t {
		return l.Log.StampAt(t, n)
	}
	earlier := l.Log.UsedAfter(t) - l.Log.UsedAfter(l.others.At-1)
	switch {
	case n <= earlier:
		return l.Log.StampAt(t, n)
	case n <= earlier+l.others.Units:
		return l.others.At
	}
	return l.Log.StampAt(t, n-l.others.Units)
}
