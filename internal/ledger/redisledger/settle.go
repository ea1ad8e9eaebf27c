package redisledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// Commit settles a reservation.
func (l *Ledger) Commit(ctx context.Context, c quota.Commit) (quota.Decision, error) {
	if err := c.Check(); err != nil {
		return quota.Decision{}, err
	}
	bucket, id, _ := quota.ParseReservation(c.Reservation)
	limits := quota.LimitsOf(bucket, c.Limits)
	answer := committedKey(c.Credential, c.Reservation)
	keys := slices.Insert(keysOf(c.Credential, bucket), 1, answer)
	label := labelOf(c.Labels)
	label.code = codeOf(label.line)
	reply, err := l.ask(ctx, "commit", keys, func(now time.Time) []any {
		n := numbers{c.Units, quota.RetentionFor(limits).Microseconds()}
		n.addLimits(limits, false, now)
		return []any{n.blob(), c.ID, label.code, label.line, label.run, id}
	})
	if err != nil {
		return quota.Decision{}, err
	}
	switch status := reply.status(); status {
	case allowed, replayed:
		return settled(bucket, c.ID, answer, reply)
	default:
		return quota.Decision{}, request{
			reservation: c.Reservation, userKey: "commit of " + c.Reservation,
			costs: []quota.Cost{{Bucket: bucket, Units: c.Units}},
		}.refusal(status, reply)
	}
}

// settled reads the reply of commit.lua, or the answer that is kept under key.
func settled(bucket, entry, key string, reply reply) (quota.Decision, error) {
	if reply.status() == allowed {
		ints, err := reply.ints(5)
		if err != nil {
			return quota.Decision{}, err
		}
		return committed(bucket, entry, ints), nil
	}
	kept, err := parseAnswer(reply.text(), key, 5)
	if err != nil {
		return quota.Decision{}, err
	}
	d := committed(bucket, kept.id, kept.ints)
	d.Replayed = true
	return d, nil
}

// committed makes a decision of commit.lua's {1, clock, stamp, units, remaining}.
func committed(bucket, entry string, ints []int64) quota.Decision {
	d := quota.Decision{
		Allowed: true, At: fromMicro(ints[2]), Entry: entry,
		Units: map[string]int64{bucket: ints[3]}, Remaining: map[string]int64{bucket: ints[4]},
	}
	if ints[3] == 0 {
		d.Entry = ""
	}
	return d
}

// Release gives back a reservation.
func (l *Ledger) Release(ctx context.Context, credential, reservation string) (int64, error) {
	bucket, id, err := quota.ParseReservation(reservation)
	if err != nil {
		return 0, err
	}
	left, err := l.run1(ctx, "release", keysOf(credential, bucket), id)
	if left == unknown {
		return 0, fmt.Errorf("%s: %w", reservation, quota.ErrNoReservation)
	}
	return left, err
}

// maxRewritten is how many later entries a cancellation may have to write again: about 20 ms of the
// server's time.
const maxRewritten = 10_000

// Cancel takes back a charge.
func (l *Ledger) Cancel(ctx context.Context, c quota.Charge, d quota.Decision) error {
	answer := answerTo(c.Credential, c.Key)
	keys := []string{labelsKey(c.Credential), cmp.Or(answer, labelsKey(c.Credential))}
	for _, cost := range c.Costs {
		keys = append(keys, bucketKeys(c.Credential, cost.Bucket)...)
		keys = append(keys, sumsKey(c.Credential, cost.Bucket))
	}
	draws, reservation := drawnOn(c.Costs, c.Reservation)
	n := numbers{d.At.UnixMicro(), flag(answer != ""), int64(draws), maxRewritten}
	done, err := l.run1(ctx, "cancel", keys, n.blob(), c.ID, reservation)
	if err == nil && done == 0 {
		err = fmt.Errorf("%w: %s of %s, or more than %d entries came after it",
			quota.ErrNoEntry, c.ID, c.Credential, maxRewritten)
	}
	return err
}
