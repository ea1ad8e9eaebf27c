package sqliteledger

import (
	"context"

	"quotabudget/internal/quota"
)

// Usage implements quota.Ledger.
func (l *Ledger) Usage(ctx context.Context, credential string, limits []quota.Limit) (quota.Usage, error) {
	var usage quota.Usage
	err := l.view(ctx, func(s *session) error {
		now := s.now()
		usage = quota.Usage{At: stamp(now)}
		seen := make(map[string]bool)
		for _, limit := range limits {
			if seen[limit.Bucket] {
				continue
			}
			seen[limit.Bucket] = true
			u, err := s.usage(credential, limitsOf(limit.Bucket, limits), now)
			if err != nil {
				return err
			}
			usage.Buckets = append(usage.Buckets, u)
		}
		return s.broken
	})
	return usage, err
}

// usage is the standing of the one bucket that the limits are of.
func (s *session) usage(credential string, limits []quota.Limit, now int64) (quota.BucketUsage, error) {
	b, err := s.bucket(credential, limits[0].Bucket)
	if err != nil {
		return quota.BucketUsage{}, err
	}
	n := moment(now, b)
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
