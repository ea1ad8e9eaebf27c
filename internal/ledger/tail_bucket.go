package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// maxRecent is how many entries of a bucket are remembered to detect changes. Charges are cancelled
// within moments, and late settlements come soon.
const maxRecent = 5000

// bucket is the state of following one bucket's log.
type bucket struct {
	credential, name string
	newest           quota.Entry   // the last entry read; At is zero before the first
	recent           []quota.Entry // reported entries, oldest first
	since            time.Time     // recent has all entries after it, up to newest
}

// first reads the initial entries, and finds the newest one if it is not among them.
func (b *bucket) first(ctx context.Context, l quota.EntryReader, q quota.Query) (
	entries []quota.Entry, err error) {
	if q.Limit > 0 {
		entries, err = l.Entries(ctx, q)
	} else {
		entries, err = all(ctx, l, q)
	}
	if err != nil {
		return nil, err
	}
	b.since = q.Since
	if q.Limit > 0 && len(entries) == q.Limit {
		b.since = before(entries[0])
	}
	b.remember(entries)
	if len(entries) == 0 {
		err = b.find(ctx, l, time.Time{})
	}
	return entries, err
}

// find sets newest to the last entry up to until, or the last of all if until is zero.
func (b *bucket) find(ctx context.Context, l quota.EntryReader, until time.Time) error {
	q := quota.Query{Credential: b.credential, Bucket: b.name, Until: until, Limit: 1}
	entries, err := l.Entries(ctx, q)
	b.newest = quota.Entry{}
	for _, e := range entries {
		b.newest = e
	}
	return err
}

// read adds the bucket's new entries. It reads the newest known entry again: if that entry and its
// running total are unchanged, so are all earlier ones, unless as many units were added to them as
// were taken off since the last call.
func (b *bucket) read(ctx context.Context, l quota.EntryReader, news *TailNews) error {
	q := quota.Query{Credential: b.credential, Bucket: b.name}
	last := b.newest
	if !last.At.IsZero() {
		q.Since = before(last)
	}
	entries, err := all(ctx, l, q)
	if err != nil {
		return err
	}
	var current quota.Entry
	if len(entries) > 0 && entries[0].At.Equal(last.At) {
		current, entries = entries[0], entries[1:]
	}
	if current.ID != last.ID || current.Total != last.Total || current.Units != last.Units {
		if err := b.compare(ctx, l, entries, news); err != nil {
			return err
		}
	}
	b.remember(entries)
	news.add(entries)
	return nil
}

// remember records reported entries.
func (b *bucket) remember(entries []quota.Entry) {
	if len(entries) == 0 {
		return
	}
	b.newest = entries[len(entries)-1]
	b.recent = append(b.recent, entries...)
	if more := len(b.recent) - maxRecent; more > 0 {
		b.since = before(b.recent[more])
		b.recent = slices.Clone(b.recent[more:])
	}
}

// before returns a time that is earlier than the entry, and later than any earlier entry.
func before(e quota.Entry) time.Time { return e.At.Add(-time.Microsecond) }

// compare reads the reported entries again, and adds to news the units that were taken back and the
// entries that were inserted. Old entries that the ledger has trimmed do not count.
func (b *bucket) compare(ctx context.Context, l quota.EntryReader, later []quota.Entry,
	news *TailNews) error {
	if len(later) > 0 {
		retained := later[len(later)-1].At.Add(-quota.Retention)
		b.recent = slices.DeleteFunc(b.recent,
			func(e quota.Entry) bool { return !e.At.After(retained) })
		if b.since.Before(retained) {
			b.since = retained
		}
	}
	q := quota.Query{Credential: b.credential, Bucket: b.name, Until: b.newest.At, Since: b.since}
	now, err := all(ctx, l, q)
	if err != nil {
		return err
	}
	left := make(map[time.Time]quota.Entry, len(now))
	for _, e := range now {
		left[e.At] = e
	}
	const maxAtOnce = 100 // more were not cancelled one by one: the log was replaced
	if len(now) == 0 && len(b.recent) > maxAtOnce {
		news.Notes = append(news.Notes, fmt.Sprintf("the log of bucket %s of %s was replaced: "+
			"the entries shown so far no longer exist", b.name, b.credential))
	} else {
		news.takeBack(b.recent, left)
		news.add(without(now, b.recent))
	}
	b.recent = now
	return b.find(ctx, l, b.newest.At)
}

// takeBack adds a line for each entry that has fewer units left or is gone.
func (n *TailNews) takeBack(reported []quota.Entry, left map[time.Time]quota.Entry) {
	for _, e := range reported {
		now := left[e.At]
		if now.ID != e.ID {
			now = quota.Entry{}
		}
		if now.Units != e.Units {
			e.Units, e.Total = now.Units-e.Units, now.Total
			n.Lines = append(n.Lines, TailLine{e, true})
		}
	}
}

// without returns the entries that are not among others.
func without(entries, others []quota.Entry) []quota.Entry {
	ids := make(map[time.Time]string, len(others))
	for _, e := range others {
		ids[e.At] = e.ID
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e quota.Entry) bool {
		return ids[e.At] == e.ID
	})
}

// all reads a log in pages.
func all(ctx context.Context, l quota.EntryReader, q quota.Query) (entries []quota.Entry, err error) {
	for e, err := range quota.All(ctx, l, q) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}
