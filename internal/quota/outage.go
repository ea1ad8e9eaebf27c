package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// IsAway reports whether the ledger could not be reached, or its reply may have been lost: a retry
// may help.
func IsAway(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrLedgerUnusable) ||
		errors.Is(err, context.DeadlineExceeded)
}

// failsOpen reports whether a call may pass although the ledger returned err.
func (b *Budget) failsOpen(call Call, err error) bool {
	unreachable := errors.Is(err, ErrUnreachable) || errors.Is(err, ErrLedgerUnusable)
	return unreachable && slices.Contains(b.Open, call.Method)
}

// unmetered lets a charge pass that the ledger could not decide because of why, once it is in the
// journal, or would be if it is a dry run. With AtMost, nothing passes without a line. reservation
// is the one requested from the ledger.
func (b *Budget) unmetered(ctx context.Context, c Charge, reservation string, why error) (
	Decision, error) {
	maximum := maxCosts(c.Costs)
	d := Decision{Allowed: true, Unmetered: true, At: time.Now().UTC(), Units: UnitsOf(maximum),
		Remaining: map[string]int64{}}
	about := []any{"method", c.Labels[LabelMethod], "error", why}
	err := ErrNoJournal
	if b.Journal != nil {
		l := Booking{ID: c.ID, At: d.At, Spent: true, Lost: !errors.Is(why, ErrNotExecuted),
			Call: Call{Key: c.Key, Labels: c.Labels, Costs: maximum, Reservation: c.Reservation,
				DryRun: c.DryRun},
			Held: Decision{Reservation: reservation}}
		var earlier string
		d.Remaining, earlier, err = b.Journal.Spend(ctx, l, b.AtMost)
		d.Entry, d.Replayed = earlier, earlier != ""
		if !d.Replayed && !c.DryRun {
			d.Entry = c.ID
		}
	}
	switch {
	case c.DryRun && (err == nil || b.AtMost == 0 && !errors.Is(err, ErrKeyReused)):
	case err == nil:
		b.Log.Warn("ledger cannot be reached: call passes and is kept in the journal",
			append(about, "left", d.Remaining)...)
	case b.AtMost > 0 || errors.Is(err, ErrKeyReused):
		return Decision{}, fmt.Errorf("%w; %w", why, err)
	default:
		d.Entry = ""
		b.Log.Warn("ledger cannot be reached: call passes unmetered, as configured",
			append(about, "journal", err)...)
	}
	return d, nil
}

// maxCosts returns the costs with the maximum units of the call.
func maxCosts(costs []Cost) []Cost {
	var maximum []Cost
	for _, c := range costs {
		if !IsLabelBucket(c.Bucket) { // booking adds the label buckets itself
			maximum = append(maximum, Cost{Bucket: c.Bucket, Units: max(c.Units, c.Most)})
		}
	}
	return maximum
}

// correct replaces the journal line of a call that passed without the ledger by its actual usage,
// which is empty if the call was not sent. A posted line stays, and only usage beyond it is booked.
func (b *Budget) correct(ctx context.Context, passed Decision, used Call) error {
	if b.Journal == nil || passed.Entry == "" || passed.Replayed {
		return nil
	}
	err := b.Journal.Correct(ctx, passed.Entry, used.Costs)
	if !errors.Is(err, ErrNoEntry) || len(used.Costs) == 0 {
		return err
	}
	return b.bookBeyond(ctx, passed.Entry, passed.Units, used)
}

// bookBeyond books the usage of a call beyond the units that its journal line was posted with.
func (b *Budget) bookBeyond(ctx context.Context, id string, posted map[string]int64,
	used Call) error {
	beyond := Charge{Key: "beyond " + id, Costs: slices.Clone(used.Costs)}
	for i := range beyond.Costs {
		beyond.Costs[i].Units -= posted[beyond.Costs[i].Bucket]
	}
	return b.bookTruth(ctx, used, beyond, new(Decision))
}

// Pause waits for d if d is positive. It returns false if ctx ends first.
func Pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 { // in synctest, the race detector of Go 1.26 crashes on a timer that is due
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// Patience bounds the retries while a ledger is away.
type Patience struct {
	Total   time.Duration // of all attempts; 0 for a single one
	Attempt time.Duration // of one attempt
}

// Retry calls ask until it succeeds, with growing waits while the ledger is away.
func (p Patience) Retry(ctx context.Context, ask func(context.Context) error) error {
	end := time.Now().Add(p.Total)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		attempt, done := context.WithTimeout(ctx, p.Attempt)
		err := ask(attempt)
		done()
		left := time.Until(end)
		if !IsAway(err) || left <= 0 || !Pause(ctx, min(wait, left)) {
			return err
		}
	}
}
