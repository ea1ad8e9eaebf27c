package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// repairStep is the number of entries or sums that one transaction of a repair changes.
const repairStep = 10_000

// errRaced reports that another repair finished meanwhile, so that the bucket lost the mark of this
// one.
var errRaced = errors.New("the bucket was changed during its repair")

// maxRaces is how often a repair restarts after errRaced.
const maxRaces = 10

// Check compares a bucket with its own entries, which it reads in pages. A repair writes what
// follows from them in several transactions. The first marks the bucket, so that nothing is decided
// on it before the last.
func (s *Store) Check(ctx context.Context, credential, bucket string, repair bool) (
	findings []quota.Finding, err error) {
	for range maxRaces {
		c := &checked{Audit: new(quota.Audit), s: s, ctx: ctx, name: name{credential, bucket}}
		err = s.view(ctx, c.check)
		if err != nil || !repair || len(c.Findings) == 0 {
			return c.In(bucket), err
		}
		findings = c.In(bucket)
		c.repair = true
		if err = s.update(ctx, c.begin); err == nil {
			err = s.view(ctx, c.check)
		}
		if err == nil {
			err = c.finish()
		}
		if !errors.Is(err, errRaced) {
			return findings, err
		}
	}
	return findings, fmt.Errorf("%w: %w", quota.ErrUnreachable, errRaced)
}

// checked is a bucket under check, with the findings.
type checked struct {
	*quota.Audit
	s    *Store
	ctx  context.Context
	name name

	repair  bool
	bucket  *bucket
	changes [][2]quota.LogEntry // not yet written by the repair: an entry and its new form
}

// read reads the bucket, and checks its row, its holds and its times.
func (c *checked) read(t *tx) {
	b := c.fresh(t)
	c.bucket = b
	c.Audit = quota.NewAudit(&b.Bucket, t.now(), -quota.Never)
	marked := b.known && b.digest == ^b.Digest()
	if marked {
		c.Interrupted()
	}
	intact := b.digest == b.Digest() && b.recorded == b.Recorded()
	c.CheckHolds(!b.known || marked || intact, b.recorded, 0)
	newest, _, _ := b.Newest()
	c.CheckTime(newest.At)
}

// fresh reads the bucket again, including the changes of other callers in the same transaction.
func (c *checked) fresh(t *tx) *bucket {
	t.flush()
	clear(t.buckets)
	defer clear(t.buckets)
	return t.bucket(c.name.credential, c.name.bucket)
}

// check reads and checks everything. A repair writes the corrected entries.
func (c *checked) check(t *tx) error {
	c.read(t)
	for after, full := -quota.Never, true; full && t.broken == nil; {
		const page = 1000
		var entries []quota.LogEntry
		t.each("entry_page", c.bucket.args(after, quota.Never, page), scanEntries(&entries))
		for _, e := range entries {
			after = e.At
			stamp := quota.StampTime(e.At).Format(time.RFC3339)
			if now, is := c.CheckEntry(e, stamp); is && c.repair && now != e {
				c.changes = append(c.changes, [2]quota.LogEntry{e, now})
			}
		}
		if full = len(entries) == page; len(c.changes) > repairStep-page || !full {
			if err := c.writeEntries(); err != nil {
				return err
			}
		}
	}
	if !c.bucket.known {
		c.Missing("row in buckets")
	}
	var tally quota.Tally
	t.sums(quota.SumQuery{Credential: c.name.credential, Bucket: c.name.bucket}, &tally)
	c.End(tally)
	c.Unread(len(c.bucket.unreadNotes()))
	return t.broken
}

// unreadNotes returns the notes whose labels cannot be read.
func (b *bucket) unreadNotes() (notes []quota.LogEntry) {
	b.t.each("note_list", b.args(-quota.Never, quota.Never, -1), scanEntries(&notes))
	return slices.DeleteFunc(notes, func(e quota.LogEntry) bool {
		_, err := quota.ParseLabels(e.Labels)
		return err == nil
	})
}

// begin corrects the holds, and marks the bucket.
func (c *checked) begin(t *tx) error {
	was := c.fresh(t).Holds
	c.read(t)
	if c.ChangedHolds {
		for _, h := range was {
			t.change("hold_remove", c.bucket.args(h.ID)...)
		}
		for _, h := range c.bucket.Holds {
			c.bucket.putHold(h)
		}
	}
	c.bucket.put(^c.bucket.Digest())
	return t.broken
}

// step changes the bucket in a transaction, if it is still marked.
func (c *checked) step(change func(t *tx, b *bucket)) error {
	return c.s.update(c.ctx, func(t *tx) error {
		b := c.fresh(t)
		if t.broken == nil && b.digest != ^b.Digest() {
			return errRaced
		}
		change(t, b)
		return t.broken
	})
}

func (c *checked) writeEntries() error {
	if len(c.changes) == 0 {
		return nil
	}
	err := c.step(func(t *tx, b *bucket) {
		for _, change := range c.changes {
			was, now := change[0], change[1]
			t.change("entry_remove", b.args(was.At-1, was.At)...)
			t.change("entry_remove", b.args(now.At-1, now.At)...)
			t.change("entry_add", b.args(now.At, now.ID, now.Units, now.Total, now.Labels)...)
		}
	})
	c.changes = nil
	return err
}

// finish writes the sums, removes notes that cannot be read, and removes the mark.
func (c *checked) finish() error {
	var rows [][]any
	c.Sums.Each(func(at int64, labels string, units, charges int64) {
		rows = append(rows, c.bucket.args(at, labels, units, charges))
	})
	err := c.step(func(t *tx, b *bucket) { t.change("sum_clear", b.args()...) })
	for some := range slices.Chunk(rows, repairStep) {
		if err != nil {
			return err
		}
		err = c.step(func(t *tx, _ *bucket) {
			for _, row := range some {
				t.change("sum_add", row...)
			}
		})
	}
	if err != nil {
		return err
	}
	return c.step(func(t *tx, b *bucket) {
		for _, n := range b.unreadNotes() {
			t.change("note_remove", b.args(n.At, n.ID)...)
		}
		b.State = c.bucket.State
		b.put(b.Digest())
	})
}
