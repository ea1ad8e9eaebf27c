package sqlitestore

import (
	"database/sql"
	"encoding/json"
	"errors"

	"quotabudget/internal/quota"
)

// Maximum numbers of rows that a change deletes when it adds one of the kind.
const (
	trimEntries = 64
	trimLapsed  = 256
	trimNotes   = 64
	trimAnswers = 4
	trimValues  = 4
	trimIdle    = 10_000 // entries of label values that no window counts
)

// write writes a change of the buckets and the answer in scope.
func (t *tx) write(scope quota.Scope, ch quota.Change) {
	for i, change := range ch.Buckets {
		t.bucket(scope.Credential, scope.Buckets[i]).write(change)
	}
	if k := ch.Keep; k != nil {
		t.change("answer_trim", t.now(), trimAnswers)
		t.change("answer_keep", scope.Credential, k.Name, k.Request, k.Decision, k.Expires)
	}
	if ch.Forget != "" {
		t.change("answer_forget", scope.Credential, ch.Forget)
	}
}

func (b *bucket) write(ch quota.BucketChange) {
	if ch.From != 0 {
		b.remove(ch.From-1, quota.Never, -1)
	}
	for _, e := range ch.Entries {
		b.add(e)
	}
	for _, e := range ch.Append {
		b.add(e)
	}
	for _, id := range ch.Drop {
		b.t.change("hold_remove", b.args(id)...)
	}
	if ch.Settled != 0 {
		b.t.change("lapsed_remove", b.args(b.Lapsed.ID, ch.Settled)...)
	}
	for _, h := range ch.Put {
		if h.LapsedAt > 0 {
			b.t.change("hold_remove", b.args(h.ID)...)
			b.t.change("lapsed_put", b.args(h.ID, h.LapsedAt)...)
			continue
		}
		b.putHold(h)
	}
	if n := ch.Note; n != nil {
		b.t.change("note_add", b.args(n.At, n.ID, n.Units, n.Labels)...)
	}
	if ch.Keep > 0 && !b.trimmed {
		b.trim(ch.Keep)
	}
	if !b.known && quota.IsLabelBucket(b.Name) {
		b.forgetIdle()
	}
	b.dirty = b.dirty || ch.State != nil || len(ch.Drop)+len(ch.Put) > 0 || !b.known
	b.Apply(ch)
}

// add writes an entry, and adds it to the sums.
func (b *bucket) add(e quota.LogEntry) {
	b.t.change("entry_add", b.args(e.At, e.ID, e.Units, e.Total, e.Labels)...)
	b.sums.Add(e.At, quota.CutRun(e.Labels), e.Units, 1)
	b.last = windowTotal{}
}

// remove removes up to limit (-1: all) of the oldest entries stamped later than after and up to
// until, and subtracts them from the sums.
func (b *bucket) remove(after, until int64, limit int) {
	var removals []quota.LogEntry
	b.t.each("entry_page", b.args(after, until, limit), scanEntries(&removals))
	if len(removals) == 0 {
		return
	}
	for _, e := range removals {
		b.sums.Add(e.At, quota.CutRun(e.Labels), -e.Units, -1)
	}
	b.t.change("entry_remove", b.args(after, removals[len(removals)-1].At)...)
	b.last = windowTotal{}
}

// trim deletes a bounded number of rows that are older than any window needs.
func (b *bucket) trim(until int64) {
	b.trimmed = true
	b.remove(-quota.Never, until, trimEntries)
	b.t.change("lapsed_trim", b.args(until, trimLapsed)...)
	b.t.change("note_trim", b.args(until, trimNotes)...)
}

// forgetIdle deletes other values of labels that no window counts, with a bounded number of
// entries. It runs when a value begins its log, so that the file does not keep every value for
// ever. It makes no room even if the clock is set back, because each charge of the value is also a
// charge of the bucket, stamped after its newest entry.
func (b *bucket) forgetIdle() {
	whole := quota.WholeOf(b.Name)
	args := []any{b.Credential, whole, whole + "~", b.t.now(), trimValues}
	var idle []string
	b.t.each("bucket_idle", args, func(row *sql.Rows) error {
		idle = append(idle, "")
		return row.Scan(&idle[len(idle)-1])
	})
	for _, name := range idle {
		idleBucket := b.t.bucket(b.Credential, name)
		if idleBucket.err != nil {
			continue // ledger check reports it
		}
		idleBucket.remove(-quota.Never, quota.Never, trimIdle)
		if _, left, err := idleBucket.Newest(); left || err != nil {
			return
		}
		b.t.change("holds_remove", idleBucket.args()...)
		b.t.change("lapsed_trim", idleBucket.args(quota.Never, trimIdle)...)
		b.t.change("bucket_remove", idleBucket.args()...)
		idleBucket.known, idleBucket.Holds, idleBucket.State = false, nil, quota.State{}
	}
}

// flush writes the sums and rows, once for all changes of the transaction.
func (t *tx) flush() {
	for _, b := range t.buckets {
		b.sums.Each(func(at int64, labels string, units, charges int64) {
			if units|charges == 0 {
				return
			}
			t.change("sum_add", b.args(at, labels, units, charges)...)
			if charges < 0 {
				t.change("sum_drop_empty", b.args(at, labels)...)
			}
		})
		if b.dirty {
			b.put(b.Digest())
		}
	}
}

// put writes the row of the bucket. With a wrong digest, every decision on the bucket fails.
func (b *bucket) put(digest int64) {
	s := b.State
	levels, err := json.Marshal(s.Levels)
	others, err2 := json.Marshal(s.Others)
	b.t.failIn("bucket_put", errors.Join(err, err2))
	b.t.change("bucket_put", b.args(s.SuspendedUntil, s.SuspendedSince, s.SuspendedBy, s.Reason,
		s.ResetAt, s.Keep, s.Floor, string(levels), string(others), b.Recorded(), digest)...)
}

func (b *bucket) putHold(h quota.Hold) {
	b.t.change("hold_put", b.args(h.ID, h.Units, h.Most, h.Drawn, h.Created, h.Expires, h.Lapse,
		h.Labels, h.Manual, h.Note)...)
}
