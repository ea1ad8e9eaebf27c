package sqliteledger

import (
	"context"
	"slices"

	"quotabudget/internal/quota"
)

// Usage implements quota.Ledger.
func (l *Ledger) Usage(ctx context.Context, credential string, limits []quota.Limit) (
	usage quota.Usage, err error) {
	err = l.view(ctx, func(s *session) {
		now := s.now()
		usage.At = stamp(now)
		var buckets []*bucket
		for _, limit := range limits {
			is := func(b *bucket) bool { return b.name == limit.Bucket }
			if !slices.ContainsFunc(buckets, is) {
				buckets = append(buckets, s.bucket(credential, limit.Bucket))
			}
		}
		n := moment(now, buckets...)
		for _, b := range buckets {
			usage.Buckets = append(usage.Buckets, b.usage(quota.LimitsOf(b.name, limits), n))
		}
	})
	return usage, err
}

// usage is the standing of the bucket and its limits at the time n.
func (b *bucket) usage(limits []quota.Limit, n int64) quota.BucketUsage {
	a := ask{bucket: b, held: b.live(n)}
	first := b.holds(n, a.held, 1)
	u := quota.BucketUsage{Bucket: b.name, Held: a.held}
	if n < b.suspended {
		u.SuspendedUntil = stamp(b.suspended)
	}
	for _, l := range limits {
		st := a.standing(l, n)
		st.Holds = first
		lu := quota.LimitUsage{Limit: l, Used: st.Used(), Remaining: st.Remaining(l.Cap(false))}
		if next := st.NextFree(); next != 0 {
			lu.NextFreeAt = stamp(next)
		}
		u.Limits = append(u.Limits, lu)
	}
	return u
}
