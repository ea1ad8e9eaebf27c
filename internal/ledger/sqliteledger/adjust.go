package sqliteledger

import (
	"context"
	"database/sql"
	"fmt"

	"quotabudget/internal/quota"
)

// Adjust implements quota.Ledger.
func (l *Ledger) Adjust(ctx context.Context, a quota.Adjust) (d quota.Decision, err error) {
	if err := a.Check(); err != nil {
		return d, err
	}
	err = l.update(ctx, func(s *session) (err error) {
		d, err = s.adjust(a)
		return err
	})
	if err != nil {
		return quota.Decision{}, err
	}
	return d, nil
}

// adjust looks at everything before it writes anything.
func (s *session) adjust(a quota.Adjust) (quota.Decision, error) {
	now := s.now()
	kept := keyed(a.Credential, a.Key, a.Fingerprint(), now, a.Limits)
	if d, known, err := s.recall(kept); known {
		return d, err
	}
	b, n := s.lookAt(a.Credential, a.Bucket, now)
	c := correction{Adjust: a, bucket: b, n: n, at: n}
	c.after, c.until = a.Span(n)
	var holds int64
	s.find("sum_between", []any{b.id, c.after, c.until}, &holds)
	err := a.Refuses(holds)
	if err == nil {
		err = c.look()
	}
	if err != nil {
		return quota.Decision{}, err
	}
	d := a.Done(a.ID, stamp(c.at))
	if a.DryRun {
		return d, nil
	}
	if a.Units > 0 {
		c.add()
	} else {
		c.takeOff()
	}
	s.change("level_clear", b.id)
	s.remember(kept, d)
	return d, nil
}

// correction is one that is being made.
type correction struct {
	quota.Adjust
	*bucket
	n            int64
	after, until int64
	at           int64      // of the entry that is added, or n
	lowered      []entryRow // of those that units are taken off, newest first
	stays        int64      // units of the last of them
}

// look finds the entries that are to be changed, or the time of the one to be added.
func (c *correction) look() error {
	var rest int64
	if c.Units < 0 {
		rest = -c.Units
	} else if c.until < c.n {
		c.at = c.until
	}
	c.s.each("entry_newest_first", []any{c.id, c.until, c.after}, func(row *sql.Rows) error {
		var e entryRow
		err := row.Scan(&e.at, &e.id, &e.units, &e.total, &e.labels)
		switch {
		case c.Units > 0 && e.at == c.at:
			c.at--
		case rest == 0, len(c.lowered) > maxRewritten:
			return errEnough
		default:
			less := min(rest, e.units)
			rest, c.stays, c.lowered = rest-less, e.units-less, append(c.lowered, e)
		}
		return err
	})
	if rest > 0 && len(c.lowered) <= maxRewritten {
		c.damaged(unsteady)
	}
	return c.reachable()
}

// reachable makes sure that few enough entries are to be written again.
func (c *correction) reachable() error {
	from := c.until
	if c.Units > 0 {
		from = c.at
	}
	var later int64
	var least sql.NullInt64
	c.s.find("entry_count_after", []any{c.bucket.id, from, maxRewritten + 1}, &later, &least)
	switch {
	case c.at <= c.after && c.at < c.n, later+int64(len(c.lowered)) > maxRewritten:
		return fmt.Errorf("%w: more than %d entries of bucket %s came after it", quota.ErrNoEntry,
			maxRewritten, c.name)
	case later > 0 && least.Int64+c.Units < 1:
		c.damaged(unsteady)
	}
	return nil
}

// add writes an entry among the others.
func (c *correction) add() {
	b := c.bucket
	b.row()
	b.keep(c.Limits)
	if b.total+c.Units > quota.MaxTotal {
		b.damaged("its running total of %d cannot grow by %d", b.total, c.Units)
	}
	before := b.base(c.at)
	b.s.change("entry_lower_after", b.id, c.at, -c.Units)
	b.s.change("entry_add", b.id, c.at, c.ID, c.Units, before+c.Units, c.Labels.Encode())
	b.total, b.newest = b.total+c.Units, max(b.newest, c.at)
	b.s.change("bucket_update", b.id, b.total, b.newest, b.retention)
}

// takeOff lowers or removes entries, and notes that.
func (c *correction) takeOff() {
	b, last := c.bucket, c.lowered[len(c.lowered)-1]
	b.s.change("entry_remove_span", b.id, last.at-1, c.until)
	gone := last.at - 1
	if c.stays > 0 {
		gone = last.at
		b.s.change("entry_add", b.id, last.at, last.id, c.stays, last.total-last.units+c.stays,
			last.labels)
	}
	b.s.change("lapsed_remove_span", b.id, gone, c.until)
	b.s.change("entry_lower_after", b.id, c.until, -c.Units)
	b.s.change("bucket_lower", b.id, -c.Units)
	b.keep(nil)
	b.s.change("taking_add", b.id, c.n, c.ID, -c.Units, c.Labels.Encode())
	b.s.change("taking_trim", b.id, c.n-b.retention)
}

// Takings implements quota.Ledger.
func (l *Ledger) Takings(ctx context.Context, q quota.Query) (takings []quota.Taking, err error) {
	most := -1
	if q.Limit > 0 {
		most = q.Limit
	}
	err = l.view(ctx, func(s *session) {
		b, _ := s.lookAt(q.Credential, q.Bucket, s.now())
		args := []any{b.id, micros(q.Since, -quota.Never), micros(q.Until, quota.Never), most}
		s.each("taking_list", args, func(row *sql.Rows) error {
			t := quota.Taking{Bucket: b.name}
			var at int64
			var labels string
			err := row.Scan(&at, &t.ID, &t.Units, &labels)
			t.At, t.Labels = stamp(at), b.labels(labels)
			takings = append(takings, t)
			return err
		})
	})
	return takings, err
}
