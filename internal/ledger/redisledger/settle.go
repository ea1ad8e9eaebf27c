package redisledger

import (
	"context"
	"fmt"
	"time"

	"quotabudget/internal/quota"
)

// Commit settles a reservation.
func (l *Ledger) Commit(ctx context.Context, c quota.Commit) (quota.Decision, error) {
	if err := c.Check(); err != nil {
		return quota.Decision{}, err
	}
	bucket, id, _ := quota.ParseReservation(c.Reservation)
	limits := byBucket([]quota.Cost{{Bucket: bucket}}, c.Limits)[0]
	keys := append([]string{labelsKey(c.Credential), committedKey(c.Credential, c.Reservation)},
		bucketKeys(c.Credential, bucket)...)
	label := labelOf(c.Labels)
	label.code = codeOf(label.line)
	reply, err := l.ask(ctx, l.commit, keys, func(now time.Time) []any {
		n := numbers{c.Units, quota.RetentionFor(limits).Microseconds()}
		n.addLimits(limits, false, now)
		return []any{n.blob(), c.ID, label.code, label.line, label.run, id}
	})
	if err != nil {
		return quota.Decision{}, err
	}
	switch status := reply.status(); status {
	case allowed, replayed:
		return settled(bucket, c.ID, keys[1], reply)
	default:
		return quota.Decision{}, request{
			reservation: c.Reservation, userKey: "commit of " + c.Reservation, costs: []quota.Cost{{Bucket: bucket, Units: c.Units}},
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
	keys := append([]string{labelsKey(credential)}, bucketKeys(credential, bucket)...)
	left, err := l.release.Run(ctx, l.client, keys, numbers{}.blob(), id).Int64()
	if err != nil {
		return 0, explain(err)
	}
	if left == unknown {
		return 0, fmt.Errorf("%s: %w", reservation, quota.ErrNoReservation)
	}
	return left, nil
}

// maxRewritten is how many later entries a cancellation may have to write again: about 20 ms of the
// server's time.
const maxRewritten = 10_000

// Cancel takes back a charge.
func (l *Ledger) Cancel(ctx context.Context, c quota.Charge, d quota.Decision) error {
	request := request{credential: c.Credential, key: answerTo(c.Credential, c.Key), costs: c.Costs}
	keys := request.keys()[:2]
	for _, c := range request.costs {
		keys = append(keys, bucketKeys(request.credential, c.Bucket)...)
		keys = append(keys, sumsKey(request.credential, c.Bucket))
	}
	draws, reservation := drawnOn(c.Costs, c.Reservation)
	n := numbers{d.At.UnixMicro(), flag(request.key != ""), int64(draws), maxRewritten}
	done, err := l.cancel.Run(ctx, l.client, keys, n.blob(), c.ID, reservation).Int64()
	if err != nil {
		return explain(err)
	}
	if done == 0 {
		return fmt.Errorf("%w: %s of %s, or more than %d entries came after it", quota.ErrNoEntry, c.ID, c.Credential, maxRewritten)
	}
	return nil
}
