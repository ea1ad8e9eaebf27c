package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Journal keeps on this host's disk what the ledger does not have yet: calls that passed while it
// could not be reached, and what calls used until that is booked. A process that is killed loses
// none of it: the next one posts the lines, see Budget.Post.
type Journal interface {
	// Spend adds a line of a call that passes without the ledger, and returns once it is on the
	// disk. Where atMost is above 0, the lines that wait may have no more units of a bucket
	// together: ErrOutageSpent. It returns the units that are left by bucket, and the ID of an
	// earlier line with the same key, which is not added again.
	Spend(ctx context.Context, l Booking, atMost int64) (left map[string]int64, earlier string,
		err error)
	// Correct replaces the costs of a spent line; without costs it removes the line. Errors:
	// ErrNoEntry when the line was posted.
	Correct(ctx context.Context, id string, costs []Cost) error
	// Keep adds a line of what a call used, before the ledger is asked to book it.
	Keep(ctx context.Context, l Booking) error
	// Remove removes a line that was booked.
	Remove(ctx context.Context, id string) error
	// Lines returns the lines that wait, oldest first.
	Lines(ctx context.Context) ([]Booking, error)
	// Due reports whether it is time to look for lines that wait: at the first call, after a line
	// was added that may stay, and once a minute.
	Due() bool
	// Note keeps a text for later requests, in the place of one with that name.
	Note(ctx context.Context, n Note) error
	// Noted returns the note with that name. Errors: ErrNoNote.
	Noted(ctx context.Context, name string) (Note, error)
	// DueNote returns a note that is due, and makes it due again later: the older it is, the later.
	// Errors: ErrNoNote.
	DueNote(ctx context.Context, now time.Time) (Note, error)
	// Resolve replaces a note by a line, or by another note. Errors: ErrNoNote if another process
	// has done so.
	Resolve(ctx context.Context, name string, l *Booking, next *Note) error
}

// Note is what a host keeps of a call until a later one refers to it.
type Note struct {
	Name  string
	Text  string
	Due   time.Time // when to look after it; zero for never
	Until time.Time // when it may be forgotten
}

// Booking is a call whose units are to be booked, as a line of a Journal.
type Booking struct {
	ID    string    // of the entry; made once, so that every attempt books the same
	At    time.Time // by this host's clock
	Spent bool      // the call passed without the ledger
	Lost  bool      // of a spent line: the ledger may have recorded it, and its answer was lost
	Call  Call      // with the costs to be booked
	Held  Decision  // the answer of Hold
	Lapse Lapse     // of that hold
}

// answerTime bounds how long before a line of the journal the ledger may have recorded its call.
const answerTime = 5 * time.Minute

// Post books the lines of the journal, each once, however often it is tried and by how many
// processes. It stops when the ledger cannot be reached.
func (b *Budget) Post(ctx context.Context) error {
	if b.Journal == nil {
		return nil
	}
	lines, err := b.Journal.Lines(ctx)
	if err != nil {
		return err
	}
	poster := *b
	poster.Labels = nil // the lines have theirs
	for i, l := range lines {
		err := poster.post(ctx, l)
		switch {
		case IsAway(err) || ctx.Err() != nil:
			return fmt.Errorf("%d lines of the journal wait to be booked: %w", len(lines)-i, err)
		case err != nil && !errors.Is(err, ErrSettledLate): // it stands as it was held
			b.Log.Error("cannot book a line of the journal: dropping it", "id", l.ID,
				"units", UnitsOf(l.Call.Costs), "error", err)
		}
		if err := b.Journal.Remove(ctx, l.ID); err != nil {
			return err
		}
	}
	if len(lines) > 0 {
		b.Log.Info("booked what the journal held", "credential", b.Credential,
			"lines", len(lines))
	}
	return nil
}

// reached posts the journal, if that is due, since the ledger has just answered.
func (b *Budget) reached(ctx context.Context) {
	if b.Journal == nil || !b.Journal.Due() {
		return
	}
	if err := b.Post(ctx); err != nil && ctx.Err() == nil {
		b.Log.Warn("cannot post the journal, retrying later", "error", err)
	}
}

func (b *Budget) post(ctx context.Context, l Booking) error {
	if !l.Spent {
		_, err := b.book(ctx, l)
		return err
	}
	if l.Lost {
		recorded, err := b.recorded(ctx, l)
		if err != nil || recorded {
			return err
		}
	}
	key := l.Call.Key
	if key == "" {
		key = "journal " + l.ID
	}
	l.Call.Labels = l.Call.Labels.With(Labels{LabelSource: "journal"})
	var d Decision
	err := b.bookTruth(ctx, l.Call, Charge{ID: l.ID, Key: key, Costs: l.Call.Costs}, &d)
	if errors.Is(err, ErrKeyReused) { // the caller's key has paid for another call meanwhile
		return b.bookTruth(ctx, l.Call, Charge{ID: l.ID, Key: "journal " + l.ID,
			Costs: l.Call.Costs}, &d)
	}
	return err
}

// recorded reports whether the ledger has the call of a spent line: it was asked first, and only
// its answer was lost. A reservation that it made for the call is given back.
func (b *Budget) recorded(ctx context.Context, l Booking) (bool, error) {
	id := l.ID
	if l.Held.Reservation != "" {
		_, err := b.Release(ctx, l.Held.Reservation)
		if err != nil && !errors.Is(err, ErrNoReservation) {
			return false, err
		}
		id, _, _ = ParseReservation(l.Held.Reservation)
	}
	now, err := b.Ledger.Time(ctx)
	if err != nil {
		return false, err
	}
	since := now.Add(-max(0, time.Since(l.At)) - answerTime)
	return b.hasEntry(ctx, l.Call.Costs, since, id)
}

// hasEntry reports whether one of the costs' buckets has an entry since then with one of the IDs.
func (b *Budget) hasEntry(ctx context.Context, costs []Cost, since time.Time, ids ...string) (
	bool, error) {
	const page = 1000
	for _, c := range costs {
		for q := (Query{Credential: b.Credential, Bucket: c.Bucket, Since: since, First: page}); ; {
			entries, err := b.Ledger.Entries(ctx, q)
			has := func(e Entry) bool { return slices.Contains(ids, e.ID) }
			if err != nil || slices.ContainsFunc(entries, has) {
				return err == nil, err
			}
			if len(entries) < page {
				break
			}
			q.Since = entries[len(entries)-1].At
		}
	}
	return false, nil
}

// Outage is what a host may spend while the ledger cannot be reached, and what waits to be booked.
type Outage struct {
	Left    []Cost    // units by bucket of the methods that may pass; none without AtMost
	Waiting int       // lines of the journal
	Oldest  time.Time // of these, by this host's clock; zero without any
}

// Outage reads the journal. It does not need the ledger.
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
			has := func(l Cost) bool { return l.Bucket == c.Bucket }
			if !slices.ContainsFunc(o.Left, has) {
				left := max(0, b.AtMost-spent[c.Bucket])
				o.Left = append(o.Left, Cost{Bucket: c.Bucket, Units: left})
			}
		}
	}
	return o, nil
}
