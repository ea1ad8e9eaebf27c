package redisstore

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"quotabudget/internal/quota"
)

// bucket is one bucket of a snapshot, with the changes decided since. It implements quota.Log.
type bucket struct {
	quota.Bucket
	snap   *snapshot
	damage error // the first problem found in it

	number int              // position in the snapshot, from 1
	memory keptState        // the cached state
	apart  bool             // the holds are read after the snapshot
	state  string           // as stored; "" for none
	member string           // newest member of the stored log; "" for an empty log
	stored quota.LogEntry   // the entry of member
	totals []knownTotal     // totals looked up so far
	lapsed map[string]int64 // stamps of the entries of lapsed reservations

	changes
}

// knownTotal is the running total before any window that starts later than after and not later than
// until.
type knownTotal struct{ after, until, total int64 }

func newBucket(snap *snapshot, name string) *bucket {
	b := &bucket{snap: snap, lapsed: make(map[string]int64)}
	b.Credential, b.Name, b.Log = snap.credential, name, b
	b.memory = snap.s.states.get(stateKey(snap.credential, name))
	return b
}

// unread returns the error of an entry that cannot be read.
func (b *bucket) unread() error {
	return &quota.DamagedError{Credential: b.Credential, Bucket: b.Name, What: unreadable, Lost: true}
}

const unreadable = "one of its entries cannot be read"

// parse reads the part of read.lua's reply about the bucket.
func (b *bucket) parse(r *reply) {
	newest := r.members()
	if len(newest) > 0 {
		b.member, _ = newest[0].(string)
	}
	two, err := entriesOf(newest)
	switch b.state = r.text(); {
	case err != nil:
		b.damage = b.unread()
	case len(two) > 0:
		b.stored = two[0]
		if len(two) == 2 && two[0].Total-two[0].Units != two[1].Total {
			b.damage = b.Damage(quota.Unsteady)
		}
	}
	if b.state != "" && b.state == b.memory.text {
		b.State, b.Holds = b.memory.state, slices.Clone(b.memory.holds) // a lost race discards changes
		return
	}
	holds, is := r.next().([]any)
	if b.apart = !is; is {
		b.complete(holds)
	}
}

// complete reads the state and the holds, and checks them against the digest.
func (b *bucket) complete(holds []any) {
	var damage error
	for pair := range slices.Chunk(holds, 2) {
		id, _ := pair[0].(string)
		text, _ := pair[len(pair)-1].(string)
		h, err := parseHold(id, text)
		if err != nil {
			damage = b.Damage("the reservation %.64q cannot be read", id)
		}
		b.Holds = append(b.Holds, h)
	}
	state, revision, err := parseState(b.state)
	b.State = state.State
	switch {
	case b.state == "" && (b.member != "" || len(b.Holds) > 0):
		damage = b.Damage("its state is missing")
	case b.state == "" || damage != nil:
	case err != nil || stateText(&b.Bucket, revision) != b.state:
		damage = b.Damage("its reservations or its state are not what was written")
	}
	if b.damage = cmp.Or(b.damage, damage); b.damage == nil && b.state != "" {
		b.snap.s.states.put(b.key("state"), keptState{b.state, b.State, slices.Clone(b.Holds)})
	}
}

// entriesOf reads members and their stamps, up to the first that cannot be read.
func entriesOf(reply []any) (entries []quota.LogEntry, err error) {
	for pair := range slices.Chunk(reply, 2) {
		e, err := entryOf(pair)
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// entryOf reads a member and its stamp.
func entryOf(pair []any) (quota.LogEntry, error) {
	if len(pair) != 2 {
		return quota.LogEntry{}, fmt.Errorf("%v", pair)
	}
	member, _ := pair[0].(string)
	stamp, _ := pair[1].(string)
	return parseEntry(member, stamp)
}

// Newest implements quota.Log.
func (b *bucket) Newest() (quota.LogEntry, bool, error) {
	if n := len(b.added); n > 0 {
		return b.added[n-1], true, nil
	}
	return b.stored, b.member != "", nil
}

// TotalAt implements quota.Log.
func (b *bucket) TotalAt(start int64) (int64, error) {
	if i := b.addedFrom(start); i > 0 {
		return b.added[i-1].Total, nil
	}
	if start > b.stored.At || b.member == "" {
		return b.stored.Total, nil
	}
	for _, t := range b.totals {
		if start > t.after && start <= t.until {
			return t.total, nil
		}
	}
	b.snap.searched = true
	entries, err := b.snap.s.entries(b.snap.ctx, b.Credential, b.Name, start-1, quota.Never, 2)
	if err != nil {
		return 0, err
	}
	t, err := b.totalBefore(start, entries)
	if err == nil {
		b.totals = append(b.totals, t)
	}
	return t.total, err
}

// addedFrom returns the index of the first added entry stamped at or later.
func (b *bucket) addedFrom(at int64) int {
	return sort.Search(len(b.added), func(i int) bool { return b.added[i].At >= at })
}

// parseWindow reads the start of a window, and its first two entries.
func (b *bucket) parseWindow(r *reply) {
	start, err := strconv.ParseInt(r.text(), 10, 64)
	r.wrong = r.wrong || err != nil
	entries, unread := entriesOf(r.members())
	t, err := b.totalBefore(start, entries)
	if unread != nil {
		err = b.unread()
	}
	if b.totals = append(b.totals, t); b.damage == nil {
		b.damage = err
	}
}

// totalBefore returns the total before start, given the first two entries from then on.
func (b *bucket) totalBefore(start int64, entries []quota.LogEntry) (knownTotal, error) {
	t := knownTotal{after: start - 1, until: quota.Never, total: b.stored.Total}
	if len(entries) > 0 {
		t.until, t.total = entries[0].At, entries[0].Total-entries[0].Units
	}
	return t, b.Steady(entries)
}

// Reached implements quota.Log.
func (b *bucket) Reached(total int64) (int64, error) {
	if total > b.stored.Total || b.member == "" {
		i := sort.Search(len(b.added), func(i int) bool { return b.added[i].Total >= total })
		if i == len(b.added) {
			return 0, b.Damage(quota.Unsteady)
		}
		return b.added[i].At, nil
	}
	b.snap.searched = true
	text, err := b.snap.s.run(b.snap.ctx, "search", []string{b.key("log")}, total).Text()
	if err != nil && !isNil(err) {
		return 0, explainRead(err)
	}
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, b.unread()
	}
	return at, nil
}

// Since implements quota.Log.
func (b *bucket) Since(after int64, limit int) (entries []quota.LogEntry, err error) {
	if b.member != "" && after < b.stored.At {
		b.snap.searched = true
		entries, err = b.snap.s.entries(b.snap.ctx, b.Credential, b.Name, after, b.stored.At, limit)
		if err != nil {
			return nil, err
		}
	}
	added := b.added[b.addedFrom(after+1):]
	return append(entries, added[:min(len(added), limit-len(entries))]...), nil
}
