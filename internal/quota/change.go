package quota

import (
	"slices"
	"sort"
)

// Apply has the bucket's holds and state be as after a change that its store has written. It copies
// no hold that stays.
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

// writtenLog is a log with a change that is yet to be written. It is good for totals.
type writtenLog struct {
	Log
	from int64
	end  []LogEntry // all entries from a stamp on, which is from where that is not 0
}

// Newest implements Log. Of an entry before the change, only the total counts.
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
