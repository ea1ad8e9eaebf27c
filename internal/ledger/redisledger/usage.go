package redisledger

import (
	"context"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// Usage reports on the buckets of limits, by one script.
func (l *Ledger) Usage(ctx context.Context, credential string, limits []quota.Limit) (
	quota.Usage, error) {
	if len(limits) == 0 { // of a split bucket that was never used
		now, err := l.Time(ctx)
		return quota.Usage{At: now}, err
	}
	var costs []quota.Cost // only the buckets matter
	for _, limit := range limits {
		if !slices.Contains(costs, quota.Cost{Bucket: limit.Bucket}) {
			costs = append(costs, quota.Cost{Bucket: limit.Bucket})
		}
	}
	sorted := byBucket(costs, limits)
	keys := (&request{credential: credential, costs: costs}).keys()
	reply, err := l.ask(ctx, "usage", keys, func(now time.Time) []any {
		var n numbers
		for i := range costs {
			n.add(int64(len(sorted[i])))
			n.addLimits(sorted[i], false, now)
		}
		return []any{n.blob()}
	})
	if err != nil {
		return quota.Usage{}, err
	}
	if reply.status() == stale {
		return quota.Usage{}, new(request).refusal(stale, reply)
	}
	usage, err := usageOf(costs, sorted, reply)
	if err == nil {
		l.learn(usage.At.UnixMicro())
		err = l.noteSuspensions(ctx, credential, usage.Buckets)
	}
	return usage, err
}

// usageOf reads the reply of usage.lua.
func usageOf(costs []quota.Cost, limits [][]quota.Limit, reply reply) (quota.Usage, error) {
	numbers := 1
	for i := range costs {
		numbers += 4 + 3*len(limits[i])
	}
	ints, err := reply.ints(numbers)
	if err != nil {
		return quota.Usage{}, err
	}
	u := quota.Usage{At: fromMicro(ints[0])}
	ints = ints[1:]
	for i, c := range costs {
		var b quota.BucketUsage
		b, ints = bucketUsage(c.Bucket, limits[i], ints)
		u.Buckets = append(u.Buckets, b)
	}
	return u, nil
}

// bucketUsage reads one bucket's part of usage.lua's reply and returns the rest.
func bucketUsage(bucket string, limits []quota.Limit, ints []int64) (
	quota.BucketUsage, []int64) {
	b := quota.BucketUsage{Bucket: bucket, Held: ints[0], AtMost: ints[1],
		SuspendedUntil: optional(ints[2]), ResetAt: optional(ints[3])}
	ints = ints[4:]
	for _, limit := range limits {
		b.Limits = append(b.Limits, quota.LimitUsage{
			Limit: limit, Used: ints[0], Others: ints[1], NextFreeAt: optional(ints[2]),
			Remaining: max(0, limit.Cap(false)-ints[0]-b.Held),
		})
		ints = ints[3:]
	}
	return b, ints
}

// optional is a time that a script states as 0 when there is none.
func optional(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return fromMicro(us)
}
