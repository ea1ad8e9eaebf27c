package sqliteledger

import (
	"context"
	"slices"

	"quotabudget/internal/quota"
)

// Usage implements quota.Ledger.
func (l *Ledger) Usage(ctx context.Context, credential string, limits []quota.Limit) (quota.Usage, error) {
	var usage quota.Usage
	err := l.view(ctx, func(s *session) error {
		now := s.now()
		usage = quota.Usage{At: stamp(now)}
		var buckets []*bucket
		for _, limit := range limits {
			if slices.ContainsFunc(buckets, func(b *bucket) bool { return b.name == limit.Bucket }) {
				continue
			}
			b, err := s.bucket(credential, limit.Bucket)
			if err != nil {
				return err
			}
			buckets = append(buckets, b)
		}
		n := moment(now, buckets...)
		for _, b := range buckets {
			u, err := b.usage(limitsOf(b.name, limits), n)
			if err != nil {
				return err
			}
			usage.Buckets = append(usage.Buckets, u)
		}
		return s.broken
	})
	return usage, err
}

// usage is the standing of the bucket and its limits at the time n.
func (b *bucket) usage(limits []quota.Limit, n int64) (quota.BucketUsage, error) {
	u := quota.BucketUsage{Bucket: b.name}
	held, err := b.live(n)
	if err != nil {
		return u, err
	}
	first, err := b.holds(n, held, 1)
	u.Held = held
	if n < b.suspended {
		u.SuspendedUntil = stamp(b.suspended)
	}
	a := ask{bucket: b, held: held}
	for _, l := range limits {
		st := a.standing(l, n)
		st.Holds = first
		lu := quota.LimitUsage{Limit: l, Used: st.Used(), Remaining: st.Remaining(l.Cap(false))}
		if next := st.NextFree(); next != 0 {
			lu.NextFreeAt = stamp(next)
		}
		u.Limits = append(u.Limits, lu)
	}
	return u, err
}
