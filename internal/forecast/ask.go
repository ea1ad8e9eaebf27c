package forecast

import (
	"context"

	"quotabudget/internal/quota"
)

// Question is what to foretell of one credential.
type Question struct {
	Credential string
	Limits     []quota.Limit
	Paces      []quota.Limit           // that hold scheduled runs back
	Resets     map[string]quota.Window // the upstream's day of each bucket
	Lanes      []Lane                  // that spend from the credential
}

// Ask reads the ledger and foretells every bucket that has a limit, in the order of the limits. Runs are taken to want as many
// pages as those before them did. Errors are the ledger's.
func (q Question) Ask(ctx context.Context, l quota.Ledger) ([]Forecast, error) {
	usage, err := l.Usage(ctx, q.Credential, q.Limits)
	if err != nil {
		return nil, err
	}
	var buckets []Bucket
	for _, u := range usage.Buckets {
		b := Bucket{Name: u.Bucket, At: usage.At, Limits: of(u.Bucket, q.Limits), Paces: of(u.Bucket, q.Paces), Reset: q.Resets[u.Bucket],
			SuspendedUntil: u.SuspendedUntil}
		if b.Reservations, err = l.Reservations(ctx, q.Credential, b.Name); err != nil {
			return nil, err
		}
		query := quota.Query{Credential: q.Credential, Bucket: b.Name, Since: b.At.Add(-Memory(b.Limits))}
		if b.Entries, err = l.Entries(ctx, query); err != nil {
			return nil, err
		}
		buckets = append(buckets, b)
	}
	forecasts := make([]Forecast, len(buckets))
	for i, b := range buckets {
		b.Lanes = learn(q.Lanes, b)
		forecasts[i] = Of(b)
	}
	return forecasts, nil
}

func of(bucket string, limits []quota.Limit) (some []quota.Limit) {
	for _, l := range limits {
		if l.Bucket == bucket {
			some = append(some, l)
		}
	}
	return some
}
