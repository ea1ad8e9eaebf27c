package plan

import (
	"context"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// Standing is the ledger's state of one bucket.
type Standing struct {
	Name           string
	Spent          []quota.Spent // oldest first; reaches back over the longest window
	Reservations   []quota.Reservation
	SuspendedUntil time.Time // zero if the bucket is open
	ResetAt        time.Time // the last known end of an anchored window; zero for none
}

// Ledger is the part of a ledger that plans and forecasts read.
type Ledger interface {
	quota.SumReader
	Usage(ctx context.Context, credential string, limits []quota.Limit) (quota.Usage, error)
	Reservations(ctx context.Context, credential, bucket string) ([]quota.Reservation, error)
}

// Recall makes the plan start at the ledger's time, with the ledger's state.
func (p *Plan) Recall(ctx context.Context, l Ledger, credential string) error {
	usage, err := l.Usage(ctx, credential, p.Limits)
	if err != nil {
		return err
	}
	longest := share.Memory
	for _, limit := range p.Limits {
		longest = max(longest, limit.Reach())
	}
	p.From, p.Before = usage.At, nil
	for _, bucket := range p.Buckets() {
		s, err := read(ctx, l, usage, quota.SpentQuery{Credential: credential, Bucket: bucket,
			Limits: p.Limits, Since: usage.At.Add(-longest)})
		if err != nil {
			return err
		}
		p.Before = append(p.Before, s)
	}
	return nil
}

// read returns the state of the bucket that q names. usage is the credential's usage.
func read(ctx context.Context, l Ledger, usage quota.Usage, q quota.SpentQuery) (s Standing,
	err error) {
	s.Name = q.Bucket
	for _, u := range usage.Buckets {
		if u.Bucket == q.Bucket {
			s.SuspendedUntil, s.ResetAt = u.SuspendedUntil, u.ResetAt
		}
	}
	// A hold that is settled between the two reads counts twice rather than not at all.
	if s.Reservations, err = l.Reservations(ctx, q.Credential, q.Bucket); err != nil {
		return s, err
	}
	q.Now, q.Reset = usage.At, s.ResetAt
	s.Spent, err = q.Read(ctx, l)
	return s, err
}
