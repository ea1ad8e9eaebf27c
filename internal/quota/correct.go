package quota

import (
	"cmp"
	"fmt"
	"slices"
)

// Cancel removes a charge from the log of every bucket: see Ledger.Cancel.
func (a *Account) Cancel(c Charge, at int64) error {
	a.decide()
	for _, b := range a.Buckets {
		e := edit{Bucket: b, n: a.n}
		entry, found := b.entryAt(at)
		if err := a.err(); err != nil {
			return err
		}
		if !found || entry.ID != c.ID {
			return fmt.Errorf("%s in bucket %s at %s: %w", c.ID, b.Name, StampTime(at),
				ErrNoEntry)
		}
		if err := e.lower(at, entry.Units, ErrNoEntry); err != nil {
			return fmt.Errorf("%s in bucket %s: %w", c.ID, b.Name, err)
		}
		if c.Draws(b.Name) { // an expired hold may have been deleted or become an entry
			h, err := b.find(c.Reservation, a.n)
			if err == nil && h.Drawn >= entry.Units {
				h.Drawn -= entry.Units
				e.Put = append(e.Put, h)
			}
		}
		a.write(e.done(nil))
	}
	a.change.Forget = keyScope(c.Key)
	return a.err()
}

// Adjust corrects the units used in the log of its bucket: see Ledger.Adjust.
func (a *Account) Adjust(x Adjust) (d Decision, err error) {
	if d, known, err := a.recall(x.Key, x.Fingerprint()); known {
		return d, err
	}
	if err := a.Lapse(); err != nil {
		return d, err
	}
	b := a.Buckets[0]
	e := edit{Bucket: b, n: a.n}
	after, until := x.Span(a.n)
	end := b.logBase(until)
	if err := x.Refuses(max(0, end-b.logBase(after))); err != nil {
		return d, err
	}
	at := a.n
	if x.Units > 0 {
		at, err = e.insert(x, after, until)
	} else {
		err = e.takeOff(-x.Units, end, until)
		e.Note = &LogEntry{At: a.n, ID: x.ID, Units: -x.Units, Labels: x.Labels.Encode()}
	}
	if err = cmp.Or(a.err(), err); err != nil {
		return Decision{}, err
	}
	d = x.Done(x.ID, StampTime(at))
	if x.DryRun {
		return d, nil
	}
	change := e.done(x.Limits)
	change.Keep = a.n - b.keeps(&change)
	a.write(change)
	a.keep(keyScope(x.Key), x.Fingerprint(), d, x.Limits)
	return d, a.err()
}

// insert adds an entry at the end of a span, or shortly before if another entry has that stamp.
func (e *edit) insert(x Adjust, after, until int64) (at int64, err error) {
	entry := LogEntry{At: e.n, ID: x.ID, Units: x.Units, Labels: x.Labels.Encode()}
	if entry.At = min(e.n, until); entry.At > e.newest.At {
		e.append(entry)
		return entry.At, nil
	}
	for entry.At = until; entry.At > after && until-entry.At <= MaxRewritten; entry.At-- {
		if _, taken := e.entryAt(entry.At); !taken {
			break
		}
	}
	later, err := e.Log.Since(entry.At, MaxRewritten+1) // one more shows that there are too many
	e.fail(err)
	if entry.At <= after || len(later) > MaxRewritten {
		return 0, fmt.Errorf("%w: more than %d entries of bucket %s came after it", ErrNoEntry,
			MaxRewritten, e.Name)
	}
	e.less = -x.Units
	entry.Total = e.logBase(entry.At) + x.Units
	e.From, e.Entries = entry.At, []LogEntry{entry}
	for _, other := range later {
		other.Total += x.Units
		e.Entries = append(e.Entries, other)
	}
	if e.newest.Total+x.Units > MaxTotal {
		e.damaged("its running total of %d cannot grow by %d", e.newest.Total, x.Units)
	}
	return entry.At, nil
}

// takeOff takes units off the newest entries up to a time; end is the running total at that time.
func (e *edit) takeOff(units, end, until int64) error {
	first, err := e.Log.Reached(end - units + 1)
	e.fail(err)
	entries, err := e.Log.Since(first-1, MaxRewritten+1)
	e.fail(err)
	switch {
	case e.broken != nil:
		return e.broken
	case len(entries) > MaxRewritten:
		return fmt.Errorf("%w: more than %d entries of bucket %s came after it", ErrNoEntry,
			MaxRewritten, e.Name)
	case len(entries) == 0:
		e.damaged(Unsteady)
		return e.broken
	}
	last := slices.IndexFunc(entries, func(x LogEntry) bool { return x.At > until })
	if last < 0 {
		last = len(entries)
	}
	off := make([]int64, len(entries))
	for i := last - 1; i >= 0; i-- {
		off[i] = min(units, entries[i].Units)
		units -= off[i]
	}
	if units > 0 {
		e.damaged(Unsteady)
	}
	e.rewrite(entries, func(i int) int64 { return off[i] })
	return e.broken
}
