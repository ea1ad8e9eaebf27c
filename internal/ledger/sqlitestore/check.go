package sqlitestore

import (
	"context"
	"fmt"
	"time"

	"quotabudget/internal/quota"
)

// Check compares a bucket with its own entries. With repair it writes what follows from these, in
// one transaction with what it reads. It reads the entries in pages.
func (s *Store) Check(ctx context.Context, credential, of string, repair bool) (
	found []quota.Finding, err error) {
	check := func(t *tx) error {
		t.flush()
		clear(t.buckets)
		defer clear(t.buckets)
		c := &checked{bucket: t.bucket(credential, of), repair: repair, now: t.clock().UnixMicro()}
		c.check()
		found = c.In(of)
		if t.broken == nil && repair && len(found) > 0 {
			c.put()
		}
		return t.broken
	}
	if repair {
		err = s.update(ctx, check)
	} else {
		err = s.view(ctx, check)
	}
	return found, err
}

// checked is a bucket with what is wrong with it.
type checked struct {
	quota.Findings
	*bucket
	repair bool
	now    int64

	entries, totals, moved, labels int // how many, and how many of them are wrong
	sums                           quota.Tally
}

// lostLabels stand for labels that cannot be read.
const lostLabels = "labels_lost=unread"

func (c *checked) check() {
	c.checkHolds()
	c.checkEntries(c.checkTime())
	c.checkSums()
	c.checkNotes()
	if !c.known && (c.entries > 0 || len(c.Holds) > 0) {
		c.Add("its row in buckets is missing", "the row is written again: whether the bucket was "+
			"suspended, and when an anchored window ends, is lost", true)
	}
	c.State.Levels = nil // they are added up again
	c.State.Keep = max(c.State.Keep, quota.Retention.Microseconds())
	c.State.ResetAt, c.State.Floor = max(0, c.State.ResetAt), min(c.State.Floor, c.now)
}

// checkTime reports a stamp that the clock has not reached by far, and returns whether one is. The
// entries that are ahead then count from now.
func (c *checked) checkTime() (ahead bool) {
	latest := c.State.Floor
	var newest []quota.LogEntry
	c.t.each("entry_newest", c.args(), scanEntries(&newest))
	if len(newest) > 0 {
		latest = max(latest, newest[0].At)
	}
	for _, h := range c.Holds {
		latest = max(latest, h.Created)
	}
	if latest <= c.now+quota.MaxAhead {
		return false
	}
	c.Add(fmt.Sprintf("its newest time is %s, and the clock shows %s", text(latest), text(c.now)),
		"what is later than the clock is moved to now, if the clock is right; the units count from "+
			"now on", true)
	c.State.Floor = min(c.State.Floor, c.now)
	for i := range c.Holds {
		h := &c.Holds[i]
		if late := h.Created - c.now; late > 0 {
			h.Created, h.Expires = c.now, h.Expires-late
			if c.repair {
				c.putHold(*h)
			}
		}
	}
	return true
}

// checkEntries reads the entries. Totals begin with what the first one that can be read says.
func (c *checked) checkEntries(ahead bool) {
	const page = 1000
	total, last := int64(-1), int64(-1)<<62
	for after := last; c.t.broken == nil; {
		var entries []quota.LogEntry
		c.t.each("entry_page", c.args(after, quota.Never, page), scanEntries(&entries))
		for _, e := range entries {
			after = e.At
			c.entries++
			if e.Units < 1 || e.Units > quota.MaxUnits {
				c.Add("an entry cannot be read, at "+text(e.At), "none: its units are unknown. "+
					"Delete it, and adjust the bucket by what it was", false)
				total = -1
				continue
			}
			was := e
			if total < 0 {
				total = e.Total - e.Units
				if total < 0 || e.Total > quota.MaxTotal/2 {
					total = 0
				}
			}
			total += e.Units
			if e.Total = total; e.Total != was.Total {
				c.totals++
			}
			if ahead && e.At > c.now {
				e.At = max(c.now, last+1)
				c.moved++
			}
			last = e.At
			if _, err := quota.ParseLabels(e.Labels); err != nil {
				e.Labels = lostLabels
				c.labels++
			}
			c.sums.Add(e.At, quota.CutRun(e.Labels), e.Units, 1)
			if c.repair && e != was {
				c.t.change("entry_remove", c.args(was.At-1, was.At)...)
				c.t.change("entry_add", c.args(e.At, e.ID, e.Units, e.Total, e.Labels)...)
			}
		}
		if len(entries) < page {
			break
		}
	}
	if c.totals > 0 {
		c.Add(fmt.Sprintf("%d of %d running totals do not follow from the entries before",
			c.totals, c.entries), "they are added up again", true)
	}
	c.Illegible(c.labels)
}

// checkHolds compares the holds and the row with what was written.
func (c *checked) checkHolds() {
	if c.err == nil || !c.known || c.Digest() == c.digest && c.recorded == c.Recorded() {
		return
	}
	was := c.Holds
	c.CheckHolds(&c.Bucket, c.now, c.recorded, 0)
	if !c.repair {
		return
	}
	for _, h := range was {
		c.t.change("hold_remove", c.args(h.ID)...)
	}
	for _, h := range c.Holds {
		c.putHold(h)
	}
}

func (c *checked) checkSums() {
	var kept quota.Tally
	c.t.sums(quota.SumQuery{Credential: c.Credential, Bucket: c.Name}, &kept)
	var differs quota.Findings
	if c.moved == 0 {
		differs = c.sums.Differs(kept)
	}
	c.Findings = append(c.Findings, differs...)
	if c.repair && (len(differs) > 0 || c.moved+c.labels > 0) {
		c.t.change("sum_clear", c.args()...)
		c.sums.Each(func(at int64, labels string, units, charges int64) {
			c.t.change("sum_add", c.args(at, labels, units, charges)...)
		})
	}
}

func (c *checked) checkNotes() {
	var notes []quota.LogEntry
	c.t.each("note_list", c.args(-quota.Never, quota.Never, -1), scanEntries(&notes))
	unread := 0
	for _, n := range notes {
		if _, err := quota.ParseLabels(n.Labels); err != nil {
			unread++
			if c.repair {
				c.t.change("note_remove", c.args(n.At, n.ID)...)
			}
		}
	}
	c.Unread(unread)
}

func text(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.RFC3339) }
