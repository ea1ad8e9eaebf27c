package sqliteledger

import (
	"context"
	"database/sql"
	"slices"

	"quotabudget/internal/quota"
)

// Usage implements quota.Ledger.
func (l *Ledger) Usage(ctx context.Context, credential string, limits []quota.Limit) (
	usage quota.Usage, err error) {
	var names []string
	for _, limit := range limits {
		if !slices.Contains(names, limit.Bucket) {
			names = append(names, limit.Bucket)
		}
	}
	err = l.view(ctx, func(s *session) {
		now := s.now()
		usage = quota.Usage{At: stamp(now)}
		buckets, n := s.look(credential, names, now)
		for _, b := range buckets {
			usage.Buckets = append(usage.Buckets, b.usage(quota.LimitsOf(b.name, limits), n))
		}
	})
	return usage, err
}

// usage is the standing of the bucket and its limits at the time n.
func (b *bucket) usage(limits []quota.Limit, n int64) quota.BucketUsage {
	a := ask{bucket: b, held: b.live()}
	first := b.holds(n, a.held, 1)
	lapsing := a.held > 0 && b.lapsing(n)
	u := quota.BucketUsage{Bucket: b.name, Held: a.held, AtMost: b.atMost - b.expired.atMost}
	if n < b.suspended {
		u.SuspendedUntil = stamp(b.suspended)
		var since int64
		if b.s.find("suspension_find", []any{b.id}, &since, &u.SuspendedBy, &u.Reason) {
			u.SuspendedSince = stamp(since)
		}
	}
	if b.reset != 0 {
		u.ResetAt = stamp(b.reset)
	}
	for _, l := range limits {
		st := a.standing(l, n)
		st.Holds, st.Lapsing = first, lapsing
		lu := quota.LimitUsage{Limit: l, Used: st.Used(), Remaining: st.Remaining(l.Cap(false)),
			Others: st.Used() - a.own(l, n).Used()}
		if next := st.NextFree(); next != 0 {
			lu.NextFreeAt = stamp(next)
		}
		u.Limits = append(u.Limits, lu)
	}
	return u
}

// BucketsOf implements quota.Ledger.
func (l *Ledger) BucketsOf(ctx context.Context, credential string) (all []quota.BucketTotal,
	err error) {
	err = l.view(ctx, func(s *session) {
		s.each("bucket_list", []any{credential}, func(row *sql.Rows) error {
			var b quota.BucketTotal
			err := row.Scan(&b.Bucket, &b.Units, &b.Suspended)
			all = append(all, b)
			return err
		})
	})
	return all, err
}
