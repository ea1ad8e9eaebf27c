package memstore

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"quotabudget/internal/quota"
)

// Bucket is one bucket in memory. It implements quota.Log. Use it without a Store to charge at
// times of your choice: see Charge.
type Bucket struct {
	quota.Bucket
	entries []quota.LogEntry // oldest first
	lapsed  []quota.Hold
	notes   []quota.LogEntry
}

// NewBucket returns an empty bucket.
func NewBucket(credential, name string) *Bucket {
	b := &Bucket{}
	b.Credential, b.Name, b.Log = credential, name, b
	return b
}

// Add adds a past entry. Entries must be added in the order of their stamps, in Unix microseconds.
func (b *Bucket) Add(at, units int64) {
	total := units
	if n := len(b.entries); n > 0 {
		total += b.entries[n-1].Total
	}
	b.entries = append(b.entries, quota.LogEntry{At: at, Units: units, Total: total})
}

// Charge decides on a charge as a ledger does whose clock shows now, in Unix microseconds. buckets
// are the buckets of the costs, in that order. Errors are those of Ledger.Charge.
func Charge(now int64, buckets []*Bucket, c quota.Charge) (d quota.Decision, err error) {
	a := quota.Account{Now: now}
	for _, b := range buckets {
		a.Buckets = append(a.Buckets, &b.Bucket)
	}
	for {
		d, err = a.Charge(c)
		if err != nil && !errors.Is(err, quota.ErrMore) {
			return quota.Refused(c.Costs, err)
		}
		for i, change := range a.Change().Buckets {
			buckets[i].Write(change)
		}
		if err == nil {
			return d, nil
		}
	}
}

// Write applies a change to the bucket.
func (b *Bucket) Write(ch quota.BucketChange) {
	b.Apply(ch)
	if ch.From != 0 {
		b.entries = append(b.entries[:b.from(ch.From)], ch.Entries...)
	}
	b.entries = append(b.entries, ch.Append...)
	if ch.Settled != 0 {
		b.lapsed = slices.DeleteFunc(b.lapsed,
			func(h quota.Hold) bool { return h.LapsedAt == ch.Settled })
	}
	for _, h := range ch.Put {
		if h.LapsedAt > 0 {
			b.lapsed = append(b.lapsed, h)
		}
	}
	if ch.Note != nil {
		b.notes = append(b.notes, *ch.Note)
	}
	if ch.Keep > 0 {
		const most = 64
		b.entries = b.entries[min(most, b.from(ch.Keep+1)):]
		b.lapsed = slices.DeleteFunc(b.lapsed,
			func(h quota.Hold) bool { return h.LapsedAt <= ch.Keep })
	}
}

// findLapsed returns the first entry that the reservation has become.
func (b *Bucket) findLapsed(reservation string) *quota.Hold {
	for _, h := range b.lapsed {
		i := b.from(h.LapsedAt)
		if h.ID == reservation && i < len(b.entries) && b.entries[i].At == h.LapsedAt {
			return &h
		}
	}
	return nil
}

// from returns the index of the first entry stamped at a time or later.
func (b *Bucket) from(at int64) int {
	return sort.Search(len(b.entries), func(i int) bool { return b.entries[i].At >= at })
}

// Newest implements quota.Log.
func (b *Bucket) Newest() (quota.LogEntry, bool, error) {
	if len(b.entries) == 0 {
		return quota.LogEntry{}, false, nil
	}
	return b.entries[len(b.entries)-1], true, nil
}

// TotalAt implements quota.Log.
func (b *Bucket) TotalAt(start int64) (int64, error) {
	if i := b.from(start); i > 0 {
		return b.entries[i-1].Total, nil
	}
	if len(b.entries) == 0 {
		return 0, nil
	}
	return b.entries[0].Total - b.entries[0].Units, nil
}

// Reached implements quota.Log.
func (b *Bucket) Reached(total int64) (int64, error) {
	i := sort.Search(len(b.entries), func(i int) bool { return b.entries[i].Total >= total })
	if i == len(b.entries) {
		return 0, fmt.Errorf("memstore: no entry of bucket %s reaches a total of %d", b.Name, total)
	}
	return b.entries[i].At, nil
}

// Since implements quota.Log.
func (b *Bucket) Since(after int64, limit int) ([]quota.LogEntry, error) {
	since := b.entries[b.from(after+1):]
	return slices.Clone(since[:min(limit, len(since))]), nil
}
