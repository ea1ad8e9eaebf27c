package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// failsOpen reports whether a call passes that the ledger could not decide, for that reason.
func (b *Budget) failsOpen(call Call, err error) bool {
	unreachable := errors.Is(err, ErrUnreachable) || errors.Is(err, ErrLedgerUnusable)
	return unreachable && slices.Contains(b.Open, call.Method)
}

// unmetered lets a charge pass that the ledger could not decide, for that reason, if the slice can
// pay for it. What the slice paid has the ID of the entry that it will have in the ledger.
func (b *Budget) unmetered(ctx context.Context, c Charge, why error) (Decision, error) {
	d := Decision{Allowed: true, Unmetered: true, At: time.Now().UTC(), Units: UnitsOf(c.Costs),
		Remaining: map[string]int64{}}
	said := "ledger cannot be reached: call passes unmetered, as configured"
	about := []any{"method", c.Labels[LabelMethod], "error", why}
	if b.Slice != nil && !c.DryRun {
		left, err := b.Slice.Spend(ctx, c)
		switch {
		case err == nil:
			said = "ledger cannot be reached: call is paid from the slice leased for that"
			about = append(about, "left", left)
			d.Entry = c.ID
		case errors.Is(err, ErrNoSlice):
			about = append(about, "slice", err)
		default:
			return Decision{}, fmt.Errorf("%w; %w", why, err)
		}
	}
	b.Log.Warn(said, about...)
	return d, nil
}

// cancelUnmetered takes back what the slice paid for a call that surely never left.
func (b *Budget) cancelUnmetered(ctx context.Context, d Decision) error {
	if b.Slice == nil || d.Entry == "" {
		return nil
	}
	return b.Slice.Cancel(ctx, d.Entry)
}

// SuspendUntil closes a bucket until then, because the upstream gave that reason. If the ledger
// cannot be told, the slice tells it later, and pays for nothing of the bucket meanwhile.
func (b *Budget) SuspendUntil(ctx context.Context, bucket string, until time.Time,
	reason string) error {
	if len(reason) > maxText || CheckText("reason", reason) != nil {
		reason = strings.ToValidUTF8(reason[:min(len(reason), maxText)], "")
		if CheckText("reason", reason) != nil {
			reason = ""
		}
	}
	err := b.Ledger.Suspend(ctx, Suspension{Credential: b.Credential, Bucket: bucket,
		Until: until, By: ByUpstream, Reason: reason})
	if err != nil && b.Slice != nil && b.Slice.Suspend(ctx, bucket, until) == nil {
		return nil
	}
	return err
}
