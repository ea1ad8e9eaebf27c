package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// settlement is the end of a reservation in one bucket.
type settlement struct {
	*Bucket
	units int64 // used
	open  bool
	hold  Hold // if open
	late  bool // the hold has lapsed into entry
	entry LogEntry
	keeps int64 // units that stay in the entry
}

// SettledCosts returns what a settlement books in each bucket of the reservation.
func (s Settle) SettledCosts() []Cost {
	_, names, _ := ParseReservation(s.Reservation)
	costs := make([]Cost, len(names))
	for i, name := range names {
		stated := indexOf(s.Costs, name)
		costs[i] = Cost{Bucket: name, Units: AllUnits}
		switch {
		case stated >= 0:
			costs[i].Units = s.Costs[stated].Units
		case OnlyConcurrent(LimitsOf(name, s.Limits)):
			costs[i].Units = 0
		}
	}
	return costs
}

// Settle ends a reservation in all its buckets: see Ledger.Settle.
func (a *Account) Settle(s Settle) (d Decision, err error) {
	if err := a.Lapse(); err != nil {
		return d, err
	}
	costs := s.SettledCosts()
	request := requestText("settle", costs, "")
	list, open := a.settlements(costs, s.Reservation)
	if !open { // it may have been settled already
		if d, known, err := a.recall(s.Reservation, request); known {
			return d, err
		}
	}
	if err := checkSettlements(list, s); err != nil {
		return d, err
	}
	d = Decision{Allowed: true, At: StampTime(a.n), Units: map[string]int64{},
		Remaining: map[string]int64{}}
	id, _, _ := ParseReservation(s.Reservation)
	for _, t := range list {
		e := edit{Bucket: t.Bucket, n: a.n}
		if err := t.end(&e); err != nil {
			return Decision{}, err
		}
		if t.keeps > 0 && d.Entry == "" {
			d.Entry = id
		}
		if more := t.units - t.keeps; more > 0 {
			labels, err := t.labels(s)
			if err != nil {
				return Decision{}, err
			}
			e.append(LogEntry{At: a.n, ID: s.ID, Units: more, Labels: labels.Encode()})
			d.Entry = s.ID
		}
		d.Units[t.Name], d.Late = t.units, d.Late || t.late
		change := e.done(s.Limits)
		a.write(change)
		if limits := LimitsOf(t.Name, s.Limits); len(limits) > 0 && a.err() == nil {
			later := t.after(change)
			if left, limited := (ask{Bucket: later, limits: limits}).remaining(a.n, false); limited {
				d.Remaining[t.Name] = left
			}
			t.fail(later.broken)
		}
	}
	if !s.Once {
		a.keep(settledScope(s.Reservation), request, d, s.Limits)
		for _, b := range a.Buckets {
			a.change.Keep.Expires = max(a.change.Keep.Expires, a.Now+b.State.Keep)
		}
	}
	return d, a.err()
}

// labels returns the labels of the settlement, which override those of the reservation.
func (t settlement) labels(s Settle) (Labels, error) {
	labels, err := ParseLabels(cmp.Or(t.hold.Labels, t.entry.Labels))
	if err != nil {
		t.damaged("the labels of a reservation cannot be read")
		return nil, t.broken
	}
	return labels.With(s.Labels), nil
}

// settlements finds the state of the reservation in each bucket, and reports whether it is open.
func (a *Account) settlements(costs []Cost, reservation string) (list []settlement, open bool) {
	for i, b := range a.Buckets {
		t := settlement{Bucket: b, units: costs[i].Units}
		if h, err := b.find(reservation, a.n); err == nil {
			t.open, t.hold = true, h
		} else if b.Lapsed != nil {
			id, _, _ := ParseReservation(reservation)
			t.entry, t.late = b.entryAt(b.Lapsed.LapsedAt)
			t.late = t.late && t.entry.ID == id
			if !t.late { // the entry was trimmed or corrected; another one may have its stamp
				t.entry = LogEntry{}
			}
		}
		list, open = append(list, t), open || t.open
	}
	return list, open
}

// entryAt returns the entry with the stamp, if the log still has it.
func (b *Bucket) entryAt(stamp int64) (LogEntry, bool) {
	entries, err := b.Log.Since(stamp-1, 1)
	b.fail(err)
	if len(entries) == 0 || entries[0].At != stamp {
		return LogEntry{}, false
	}
	return entries[0], true
}

// checkSettlements sets the units of each settlement. Errors: ErrNoReservation if no bucket has the
// reservation, ErrReservationShort.
func checkSettlements(list []settlement, s Settle) error {
	if !slices.ContainsFunc(list, func(t settlement) bool { return t.open || t.late }) {
		return fmt.Errorf("%s: %w", s.Reservation, ErrNoReservation)
	}
	stated, unstated := map[string]bool{}, map[string]int64{} // parts, by whole bucket
	for _, t := range list {
		whole := WholeOf(t.Name)
		switch {
		case IsLabelBucket(t.Name) || whole == t.Name:
		case t.units == AllUnits:
			unstated[whole] += t.set()
		default:
			stated[whole] = true
		}
	}
	for i := range list {
		t := &list[i]
		set := t.set()
		if sum, _, _ := strings.Cut(t.Name, "@"); t.units != AllUnits && stated[sum] {
			t.units += unstated[sum] // the parts left out count in the sum, too
		}
		if t.units == AllUnits || !t.open && !t.late {
			t.units = set
		}
		if s.Within && t.units > set {
			return fmt.Errorf("%s: %d units of %s asked for, %d left: %w", s.Reservation, t.units,
				t.Name, set, ErrReservationShort)
		}
		t.keeps = min(t.units, t.entry.Units)
	}
	return nil
}

// set returns the units that the reservation has in the bucket.
func (t *settlement) set() int64 {
	if t.open {
		return t.hold.Left()
	}
	return t.entry.Units
}

// end removes the reservation. If it has lapsed, end takes all but t.keeps units off its entry.
// Errors: ErrSettledLate.
func (t *settlement) end(e *edit) error {
	switch {
	case t.open:
		e.Drop = append(e.Drop, t.hold.ID)
		return nil
	case !t.late:
		return nil
	}
	e.Settled = t.Lapsed.LapsedAt
	if t.keeps == t.entry.Units {
		return nil
	}
	if err := e.lower(t.entry.At, t.entry.Units-t.keeps, ErrSettledLate); err != nil {
		return fmt.Errorf("%s in bucket %s: %w", t.Lapsed.ID, t.Name, err)
	}
	return nil
}

// lower takes units off the entry at a stamp, and off the totals of all later entries. It returns
// late if there are more than MaxRewritten later entries.
func (e *edit) lower(stamp, units int64, late error) error {
	entries, err := e.Log.Since(stamp-1, MaxRewritten+2)
	e.fail(err)
	switch {
	case e.broken != nil:
		return e.broken
	case len(entries) > MaxRewritten+1:
		return fmt.Errorf("more than %d entries came after it: %w", MaxRewritten, late)
	case len(entries) == 0 || entries[0].At != stamp || entries[0].Units < units:
		e.damaged(Unsteady)
		return e.broken
	}
	e.rewrite(entries, func(i int) int64 {
		if i == 0 {
			return units
		}
		return 0
	})
	return nil
}

// rewrite rewrites the newest entries of the log, with off(i) units taken off the ith.
func (e *edit) rewrite(entries []LogEntry, off func(i int) int64) {
	e.From = entries[0].At
	for i, entry := range entries {
		less := off(i)
		e.less += less
		entry.Units, entry.Total = entry.Units-less, entry.Total-e.less
		if entry.Units < 0 || entry.Total < entry.Units {
			e.damaged(Unsteady)
		}
		if entry.Units > 0 {
			e.Entries = append(e.Entries, entry)
		}
	}
}

// Extend prolongs an open reservation: see Ledger.Extend.
func (a *Account) Extend(x Extend) (until time.Time, err error) {
	if err := a.Lapse(); err != nil {
		return until, err
	}
	first := Never
	for _, b := range a.Buckets {
		h, err := b.find(x.Reservation, a.n)
		if err != nil {
			return until, err
		}
		h.Expires = max(h.Expires, a.n+x.TTL.Microseconds())
		first = min(first, h.Expires)
		a.write(BucketChange{Put: []Hold{h}})
	}
	return StampTime(first), a.err()
}

// Release gives back what is left of a reservation: see Ledger.Release.
func (a *Account) Release(r Release) (given map[string]int64, err error) {
	if err := a.Lapse(); err != nil {
		return nil, err
	}
	list, open := a.settlements(make([]Cost, len(a.Buckets)), r.Reservation)
	isLate := func(t settlement) bool { return t.late }
	if !open && !(r.Late && slices.ContainsFunc(list, isLate)) {
		return nil, fmt.Errorf("%s: %w", r.Reservation, ErrNoReservation)
	}
	given = make(map[string]int64)
	for _, t := range list {
		e := edit{Bucket: t.Bucket, n: a.n}
		if err := t.end(&e); err != nil {
			return nil, err
		}
		given[t.Name] = t.entry.Units
		if t.open {
			given[t.Name] = t.hold.Left()
		}
		a.write(e.done(nil))
	}
	return given, a.err()
}
