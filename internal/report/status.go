package report

import (
	"context"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/quota"
)

// Status is what is left of the quota of each credential.
type Status struct {
	Credentials []CredentialStatus `json:"credentials"`
}

// CredentialStatus is what is left of one credential's quota.
type CredentialStatus struct {
	Credential string         `json:"credential"`
	Mode       string         `json:"mode"`
	Buckets    []BucketStatus `json:"buckets"`

	At time.Time `json:"-"` // by the ledger's clock
}

// BucketStatus is what is left of a bucket, under each of its limits.
type BucketStatus struct {
	Bucket         string        `json:"bucket"`
	Held           int64         `json:"held"`
	SuspendedUntil Time          `json:"suspended_until"`
	Limits         []LimitStatus `json:"limits"`
}

// LimitStatus is what is left under one limit, now.
type LimitStatus struct {
	Window     string  `json:"window"`
	Timezone   *string `json:"timezone"`
	Units      int64   `json:"units"`
	Headroom   int64   `json:"headroom"`
	Used       int64   `json:"used"`
	Remaining  int64   `json:"remaining"`
	NextFreeAt Time    `json:"next_free_at"`
}

func newCredentialStatus(c config.Credential, usage quota.Usage) CredentialStatus {
	out := CredentialStatus{Credential: c.Name, Mode: c.Mode(), Buckets: []BucketStatus{},
		At: usage.At}
	for _, b := range usage.Buckets {
		bucket := BucketStatus{Bucket: b.Bucket, Held: b.Held,
			SuspendedUntil: Time(b.SuspendedUntil)}
		for _, l := range b.Limits {
			bucket.Limits = append(bucket.Limits, LimitStatus{
				Window: l.Limit.Window.Text(), Timezone: OrNull(l.Limit.Window.ZoneName()),
				Units: l.Limit.Units, Headroom: l.Limit.Headroom,
				Used: l.Used, Remaining: l.Remaining, NextFreeAt: Time(l.NextFreeAt),
			})
		}
		out.Buckets = append(out.Buckets, bucket)
	}
	return out
}

// Status asks the ledger what is left.
func (s Source) Status(ctx context.Context) (out Status, err error) {
	for _, c := range s.Config.Credentials {
		usage, err := s.Ledger.Usage(ctx, c.Name, c.Limits)
		if err != nil {
			return out, err
		}
		out.Credentials = append(out.Credentials, newCredentialStatus(c, usage))
	}
	return out, nil
}
