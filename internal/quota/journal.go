package quota

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Journal keeps on this host's disk what the ledger does not have yet: calls that passed while it
// could not be reached, and the usage of calls until it is booked. If the process is killed, the
// next one posts the lines (Budget.Post).
type Journal interface {
	// Spend adds a line for a call that passes without the ledger, and returns once it is on disk.
	// If atMost is above 0 and the waiting lines would exceed it in a bucket, Spend returns
	// ErrOutageSpent. It returns the units left by bucket. If a line with the same key exists, it
	// adds none and returns that line's ID. A dry run adds no line.
	Spend(ctx context.Context, l Booking, atMost int64) (left map[string]int64, earlier string,
		err error)
	// Correct replaces the costs of a spent line; without costs it removes the line. A Lost line
	// stays with costs of 0, so that Post takes back what the ledger recorded. It returns
	// ErrNoEntry if the line was posted, or, without costs, if posting has begun.
	Correct(ctx context.Context, id string, costs []Cost) error
	// Keep adds a line for the usage of a call, before the ledger is asked to book it.
	Keep(ctx context.Context, l Booking) error
	// Begin sets the FirstCosts of a spent line to its costs, unless they are set, and returns the
	// line. It returns ErrNoEntry if the line was posted.
	Begin(ctx context.Context, id string) (Booking, error)
	// Remove removes a line that was booked, and returns true. If the line was corrected after it
	// was read, it stays, and Remove returns false.
	Remove(ctx context.Context, l Booking) (bool, error)
	// Lines returns the waiting lines, oldest first.
	Lines(ctx context.Context) ([]Booking, error)
	// Due reports whether it is time to look for waiting lines: at the first call, after adding a
	// line that may stay, and once a minute.
	Due() bool
	// Note stores a text for later requests, and replaces a note of the same name.
	Note(ctx context.Context, n Note) error
	// Noted returns the note with that name, or ErrNoNote.
	Noted(ctx context.Context, name string) (Note, error)
	// DueNote returns a due note and postpones it: the older the note, the longer. It returns
	// ErrNoNote if none is due.
	DueNote(ctx context.Context, now time.Time) (Note, error)
	// Resolve replaces a note by a line, or by another note. It returns ErrNoNote if another
	// process has already done so.
	Resolve(ctx context.Context, name string, l *Booking, next *Note) error
}

// Note is what a host stores about a call until a later one refers to it.
type Note struct {
	Name  string
	Text  string
	Due   time.Time // when to check on the call; zero for never
	Until time.Time // when the note may be deleted
}

// Booking is a line of a Journal: a call whose units are still to be booked.
type Booking struct {
	ID    string    // of the entry; the same in every attempt, so that it is booked once
	At    time.Time // by this host's clock
	Spent bool      // the call passed without the ledger
	Lost  bool      // of a spent line: the ledger may have recorded it, but its reply was lost
	Call  Call      // with the costs to be booked
	Held  Decision  // the decision of Hold
	Lapse Lapse     // of that hold
	// FirstCosts is set when Post begins to book a spent line. Every attempt books these costs
	// first, and then the units by which Call.Costs exceeds them.
	FirstCosts []Cost
}

// answerTime is how much older than its journal line a call's entry in the ledger may be.
const answerTime = 5 * time.Minute

// Post books each line of the journal once, even if several processes try. It stops when the ledger
// cannot be reached.
func (b *Budget) Post(ctx context.Context) error {
	if b.Journal == nil {
		return nil
	}
	lines, err := b.Journal.Lines(ctx)
	if err != nil {
		return err
	}
	poster := *b
	poster.Labels = nil // the lines have their own
	for i, l := range lines {
		for removed := false; !removed && err == nil; { // again if the call ends meanwhile
			removed, err = poster.postLine(ctx, l)
		}
		switch {
		case IsAway(err) || ctx.Err() != nil:
			return fmt.Errorf("%d lines of the journal wait to be booked: %w", len(lines)-i, err)
		case err != nil:
			return err
		}
	}
	if len(lines) > 0 {
		b.Log.Info("booked what the journal held", "credential", b.Credential,
			"lines", len(lines))
	}
	return nil
}

// reached posts the journal if it is due. It is called after the ledger has answered.
func (b *Budget) reached(ctx context.Context) {
	if b.Journal == nil || !b.Journal.Due() {
		return
	}
	if err := b.Post(ctx); err != nil && ctx.Err() == nil {
		b.Log.Warn("cannot post the journal, retrying later", "error", err)
	}
}

// postLine books a line, and removes it unless it was corrected meanwhile. Every attempt books the
// same costs under the same keys.
func (b *Budget) postLine(ctx context.Context, l Booking) (removed bool, err error) {
	if l.Spent {
		if l, err = b.Journal.Begin(ctx, l.ID); errors.Is(err, ErrNoEntry) {
			return true, nil // another process has booked it
		}
		if err != nil {
			return false, err
		}
		if err = b.postSpent(ctx, l); err == nil {
			err = b.bookBeyond(ctx, l.ID, UnitsOf(l.FirstCosts), l.Call)
		}
	} else {
		_, err = b.book(ctx, l)
	}
	switch {
	case IsAway(err) || ctx.Err() != nil:
		return false, cmp.Or(err, ctx.Err())
	case err != nil && !errors.Is(err, ErrSettledLate): // the entry stays as it was held
		b.Log.Error("cannot book a line of the journal: dropping it", "id", l.ID,
			"units", UnitsOf(l.Call.Costs), "error", err)
	}
	return b.Journal.Remove(ctx, l)
}

// postSpent books the FirstCosts of a spent line.
func (b *Budget) postSpent(ctx context.Context, l Booking) error {
	l.Call.Costs = l.FirstCosts
	if l.Lost {
		recorded, err := b.recorded(ctx, l)
		if err != nil || recorded {
			return err
		}
	}
	l.Call.Labels = l.Call.Labels.With(Labels{LabelSource: "journal"})
	own := "journal " + l.ID
	c := Charge{ID: l.ID, Key: cmp.Or(l.Call.Key, own), Costs: l.Call.Costs}
	err := b.bookTruth(ctx, l.Call, c, new(Decision))
	if errors.Is(err, ErrKeyReused) { // the key has meanwhile paid for another call
		c.Key = own
		err = b.bookTruth(ctx, l.Call, c, new(Decision))
	}
	return err
}

// recorded reports whether the ledger recorded the call of a spent line, so that only the reply was
// lost. It ends the hold for the call, and cancels the charge of a call that was not sent.
func (b *Budget) recorded(ctx context.Context, l Booking) (bool, error) {
	id := l.ID
	if l.Held.Reservation != "" {
		if booked, err := b.endLost(ctx, l); booked || err != nil {
			return booked, err
		}
		id, _, _ = ParseReservation(l.Held.Reservation)
	}
	now, err := b.Ledger.Time(ctx)
	if err != nil {
		return false, err
	}
	since := now.Add(-max(0, time.Since(l.At)) - answerTime)
	at, err := b.findEntry(ctx, l.Call.Costs, since, id)
	if at.IsZero() || l.Held.Reservation != "" || len(used(l.Call.Costs)) > 0 {
		return !at.IsZero(), err
	}
	charged := Decision{Entry: id, At: at, Units: UnitsOf(l.Call.Costs)}
	return true, b.takeBack(ctx, charged, l.Call)
}

// endLost releases the hold of a spent line. If the hold has lapsed into a charge, endLost books
// the usage in its place and returns true.
func (b *Budget) endLost(ctx context.Context, l Booking) (booked bool, err error) {
	_, err = b.Release(ctx, l.Held.Reservation)
	if !errors.Is(err, ErrNoReservation) {
		return false, err
	}
	s := b.settlement(Settle{Reservation: l.Held.Reservation, Costs: l.Call.Costs,
		Labels: b.labelsOf(l.Call)})
	s.Costs, s.Limits = s.SettledCosts(), nil
	d, err := b.Ledger.Settle(ctx, s)
	switch {
	case errors.Is(err, ErrNoReservation), errors.Is(err, ErrKeyReused):
		return false, nil
	case err != nil || !d.Late: // another run with the same key has settled the hold
		return false, err
	}
	return true, b.bookUnheld(ctx, l, l.Call.Costs)
}

// used returns the costs that are not zero.
func used(costs []Cost) []Cost {
	return slices.DeleteFunc(slices.Clone(costs), func(c Cost) bool { return c.Units < 1 })
}

// findEntry returns the time of the first entry after since that has one of the IDs, in a bucket of
// the costs; zero for none.
func (b *Budget) findEntry(ctx context.Context, costs []Cost, since time.Time, ids ...string) (
	time.Time, error) {
	for _, c := range costs {
		q := Query{Credential: b.Credential, Bucket: c.Bucket, Since: since}
		for e, err := range All(ctx, b.Ledger, q) {
			if err != nil || slices.Contains(ids, e.ID) {
				return e.At, err
			}
		}
	}
	return time.Time{}, nil
}

// Outage is what a host may spend while the ledger cannot be reached, and what waits to be booked.
type Outage struct {
	// Left has the units left in the buckets of the methods that may pass. For a method whose price
	// is known only after the call, it has the buckets of waiting calls. It is nil without AtMost.
	Left    []Cost
	Waiting int       // lines of the journal
	Oldest  time.Time // time of the oldest line, by this host's clock; zero without lines
}

// Outage reads the journal; it does not need the ledger.
func (b *Budget) Outage(ctx context.Context) (o Outage, err error) {
	lines, err := b.Journal.Lines(ctx)
	if err != nil {
		return o, err
	}
	spent := map[string]int64{}
	for _, l := range lines {
		if o.Waiting++; o.Oldest.IsZero() || l.At.Before(o.Oldest) {
			o.Oldest = l.At
		}
		for _, c := range l.Call.Costs {
			if l.Spent {
				spent[c.Bucket] += c.Units
			}
		}
	}
	if b.AtMost == 0 {
		return o, nil
	}
	for _, method := range b.Open {
		for _, c := range b.Prices[method] {
			spent[c.Bucket] += 0
		}
	}
	for _, bucket := range slices.Sorted(maps.Keys(spent)) {
		o.Left = append(o.Left, Cost{Bucket: bucket, Units: max(0, b.AtMost-spent[bucket])})
	}
	return o, nil
}
