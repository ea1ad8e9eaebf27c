package plan

import (
	"context"
	"slices"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// Question names a credential whose buckets to forecast.
type Question struct {
	Credential string
	Limits     []quota.Limit           // one for each part of a split bucket
	Paces      []quota.Limit           // hold back scheduled runs
	Resets     map[string]quota.Window // the upstream's day, by bucket
	Lanes      []share.Lane            // lanes that spend from the credential
	Price      []quota.Cost            // of a page of a lane

	Amount func(bucket string, units int64) string // see Bucket.Amount
}

// Ask reads the ledger and returns the forecast of every bucket with a limit, in the order of the
// limits. It ignores concurrent limits, which do not depend on time. Errors are the ledger's.
func (q Question) Ask(ctx context.Context, l Ledger) ([]Forecast, error) {
	q.Limits = slices.DeleteFunc(slices.Clone(q.Limits),
		func(l quota.Limit) bool { return l.Window.Concurrent })
	if len(q.Limits) == 0 {
		return nil, nil
	}
	usage, err := l.Usage(ctx, q.Credential, q.Limits)
	if err != nil {
		return nil, err
	}
	var forecasts []Forecast
	for _, u := range usage.Buckets {
		b := Bucket{At: usage.At, Lanes: q.Lanes, Limits: limitsOf(u.Bucket, q.Limits),
			Paces: limitsOf(u.Bucket, q.Paces), Reset: q.Resets[u.Bucket]}
		if quota.IsLabelBucket(u.Bucket) {
			b.Lanes = nil // their runs are forecast from the spending under the label
		}
		if q.Amount != nil {
			b.Amount = func(units int64) string { return q.Amount(u.Bucket, units) }
		}
		b.Standing, err = read(ctx, l, usage, quota.SpentQuery{Credential: q.Credential,
			Bucket: u.Bucket, Limits: b.Limits, Since: b.At.Add(-Memory(b.Limits))})
		if err != nil {
			return nil, err
		}
		for _, c := range q.Price {
			if c.Bucket == b.Name {
				b.Price = c.Units
			}
		}
		forecasts = append(forecasts, ForecastOf(b))
	}
	return forecasts, nil
}
