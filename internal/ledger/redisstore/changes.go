package redisstore

import (
	"slices"

	"quotabudget/internal/quota"
)

// changes holds the changes of a bucket by decisions on a snapshot.
type changes struct {
	written  bool // anything changed
	renewed  bool // the state must be written
	newState string
	from     int64            // stamp from which the log is rewritten; 0 for none
	added    []quota.LogEntry // from that stamp on, or after all others
	sums     quota.Tally
	holds    map[string]string // by reservation, "" for a removed one
	put      map[string]int64  // stamps of reservations that have become entries, 0 for settled ones
	notes    []quota.LogEntry
	keep     int64 // µs that entries were kept before, if they are kept longer now
}

// apply applies a change of the buckets in scope to the snapshot.
func (snap *snapshot) apply(scope quota.Scope, ch quota.Change) error {
	for i, change := range ch.Buckets {
		if err := snap.buckets[scope.Buckets[i]].apply(change); err != nil {
			return err
		}
	}
	if k := ch.Keep; k != nil {
		snap.keepAnswer(k.Name, k)
	}
	if ch.Forget != "" {
		snap.keepAnswer(ch.Forget, nil)
	}
	return nil
}

func (snap *snapshot) keepAnswer(name string, kept *quota.Answer) {
	a := snap.answers[name]
	if a == nil { // Cancel forgets one without reading it
		a = &answer{key: answerKey(snap.credential, name), unread: true}
		snap.answers[name] = a
	}
	a.now, a.dirty = kept, true
}

func (b *bucket) apply(ch quota.BucketChange) error {
	if ch.From != 0 {
		gone, err := b.Since(ch.From-1, quota.MaxRewritten+2)
		if err != nil {
			return err
		}
		for _, e := range gone {
			b.sums.Add(e.At, quota.CutRun(e.Labels), -e.Units, -1)
		}
		b.from = ch.From
	}
	for _, e := range slices.Concat(ch.Entries, ch.Append) {
		b.sums.Add(e.At, quota.CutRun(e.Labels), e.Units, 1)
		b.added = append(b.added, e)
	}
	if b.holds == nil {
		b.holds, b.put = make(map[string]string), make(map[string]int64)
	}
	for _, id := range ch.Drop {
		b.holds[id] = ""
	}
	if ch.Settled != 0 {
		b.put[b.Lapsed.ID], b.lapsed[b.Lapsed.ID] = 0, 0
	}
	for _, h := range ch.Put {
		if h.LapsedAt > 0 {
			b.holds[h.ID], b.put[h.ID], b.lapsed[h.ID] = "", h.LapsedAt, h.LapsedAt
		} else {
			b.holds[h.ID] = holdText(h)
		}
	}
	if ch.Note != nil {
		b.notes = append(b.notes, *ch.Note)
	}
	if s := ch.State; s != nil && s.Keep > b.State.Keep && b.keep == 0 {
		b.keep = b.State.Keep
	}
	b.written = true
	b.renewed = b.renewed || b.state == "" || b.from != 0 || ch.State != nil || ch.Settled != 0 ||
		len(ch.Drop)+len(ch.Put) > 0
	b.Apply(ch)
	return nil
}

// keeps returns for how many ms entries are kept.
func (b *bucket) keeps() int64 {
	return max(b.State.Keep, quota.Retention.Microseconds()) / 1000
}

// dayMillis is how many ms a log lasts longer than its newest entry is needed, and the state longer
// than the log.
const dayMillis = day / 1000

// lasts returns for how many ms the state and the holds must be kept: a day longer than the log and
// any hold, and past every time in the state.
func (b *bucket) lasts(now int64) int64 {
	until := max(now, b.State.SuspendedUntil, b.State.ResetAt, b.State.Floor)
	for _, h := range b.Holds {
		until = max(until, h.Expires)
	}
	return (until-now)/1000 + b.keeps() + 2*dayMillis
}
