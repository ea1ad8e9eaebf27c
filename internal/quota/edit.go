package quota

import (
	"slices"
	"sort"
)

// edit makes the change of one bucket.
type edit struct {
	BucketChange
	*Bucket
	n       int64 // of the decision
	less    int64 // units taken off entries
	total   int64 // after Append; valid once counted
	counted bool
}

// append adds an entry after all others.
func (e *edit) append(entry LogEntry) {
	if !e.counted {
		e.total, e.counted = e.newest.Total-e.less, true
	}
	e.total += entry.Units
	entry.Total = e.total
	if e.total > MaxTotal {
		e.damaged("its running total of %d cannot grow by %d", e.total-entry.Units, entry.Units)
	}
	e.Append = append(e.Append, entry)
}

// done finishes the change. limits are the request's limits: entries are kept as long as these
// need, and the levels of their windows are stored from now on.
func (e *edit) done(limits []Limit) BucketChange {
	b := e.Bucket
	state := b.State
	if len(e.Append)+len(e.Put) > 0 || e.From != 0 {
		state.Keep = max(state.Keep, RetentionFor(limits).Microseconds())
	}
	if floor := e.lost(); floor > state.Floor {
		state.Floor = floor
	}
	if len(e.Append) > 0 || e.From != 0 {
		state.Levels = e.levels(LimitsOf(b.Name, limits))
	}
	if !state.equal(b.State) {
		e.BucketChange.State = &state
	}
	return e.BucketChange
}

// lost returns the newest stamp if neither an entry nor a hold has it once the change is written,
// otherwise 0.
func (e *edit) lost() int64 {
	was, stays := e.floor()-1, e.Bucket.State.Floor
	switch {
	case len(e.Append) > 0:
		return 0
	case len(e.Entries) > 0:
		stays = max(stays, e.Entries[len(e.Entries)-1].At)
	case e.From == 0:
		stays = max(stays, e.newest.At)
	}
	for _, h := range e.Holds {
		if !slices.Contains(e.Drop, h.ID) {
			stays = max(stays, h.Created-1)
		}
	}
	for _, h := range e.Put {
		stays = max(stays, h.Created-1)
	}
	if stays >= was {
		return 0
	}
	return was
}

func (s State) equal(other State) bool {
	return s.SuspendedUntil == other.SuspendedUntil &&
		s.SuspendedSince == other.SuspendedSince && s.SuspendedBy == other.SuspendedBy &&
		s.Reason == other.Reason && s.ResetAt == other.ResetAt &&
		s.Keep == other.Keep && s.Floor == other.Floor && slices.Equal(s.Levels, other.Levels) &&
		slices.Equal(s.Others, other.Others)
}

// Apply updates the bucket's holds and state after its store has written a change. It does not copy
// unchanged holds.
func (b *Bucket) Apply(ch BucketChange) {
	for _, id := range ch.Drop {
		b.drop(id)
	}
	for _, h := range ch.Put {
		b.drop(h.ID)
		if h.LapsedAt == 0 {
			b.Holds = append(b.Holds, h)
		}
	}
	if ch.State != nil {
		b.State = *ch.State
	}
}

// drop removes a hold. The order of the others does not matter.
func (b *Bucket) drop(reservation string) {
	i := slices.IndexFunc(b.Holds, func(h Hold) bool { return h.ID == reservation })
	if i >= 0 {
		last := len(b.Holds) - 1
		b.Holds[i] = b.Holds[last]
		b.Holds = b.Holds[:last]
	}
}

// after returns the bucket as it will be once the change is written.
func (b *Bucket) after(ch BucketChange) *Bucket {
	later := *b
	later.Holds = slices.Clone(b.Holds)
	later.Log = &writtenLog{Log: b.Log, from: ch.From, end: slices.Concat(ch.Entries, ch.Append)}
	later.lapses, later.read = nil, nil
	later.Apply(ch)
	later.begin(b.now)
	return &later
}

// writtenLog is a log as it will be once a change is written. Only its totals are right.
type writtenLog struct {
	Log
	from int64      // stamp from which end replaces the log; 0 if end follows it
	end  []LogEntry // the last entries
}

// Newest implements Log. In an entry before the change, only the total is right.
func (l *writtenLog) Newest() (LogEntry, bool, error) {
	if len(l.end) > 0 {
		return l.end[len(l.end)-1], true, nil
	}
	if l.from == 0 {
		return l.Log.Newest()
	}
	total, err := l.Log.TotalAt(l.from)
	return LogEntry{At: l.from - 1, Units: 1, Total: total}, total > 0, err
}

// TotalAt implements Log.
func (l *writtenLog) TotalAt(start int64) (int64, error) {
	i := sort.Search(len(l.end), func(i int) bool { return l.end[i].At >= start })
	switch {
	case i > 0:
		return l.end[i-1].Total, nil
	case l.from != 0 && start > l.from:
		return l.Log.TotalAt(l.from)
	}
	return l.Log.TotalAt(start)
}
