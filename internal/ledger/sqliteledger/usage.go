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
	held, err := b.holds(n)
	u := quota.BucketUsage{Bucket: b.name}
	for _, h := range held {
		u.Held += h.Units
	}
	if n < b.suspended {
		u.SuspendedUntil = stamp(b.suspended)
	}
	a := ask{bucket: b}
	for _, l := range limits {
		st := a.standing(l, n, held)
		lu := quota.LimitUsage{Limit: l, Used: st.Used(), Remaining: st.Remaining(l.Cap(false))}
		if next := st.NextFree(); next != 0 {
			lu.NextFreeAt = stamp(next)
		}
		u.Limits = append(u.Limits, lu)
	}
	return u, err
}
