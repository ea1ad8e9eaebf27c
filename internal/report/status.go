package report

import (
	"context"
	"path/filepath"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// Status is the remaining quota of each credential, with the ledger and files that it comes from.
type Status struct {
	Ledger      string             `json:"ledger"` // URL without what may be a password
	Config      *string            `json:"config"` // path of the configuration file
	Credentials []CredentialStatus `json:"credentials"`
}

// CredentialStatus is the remaining quota of one credential.
type CredentialStatus struct {
	Credential string         `json:"credential"`
	Mode       string         `json:"mode"`
	Buckets    []BucketStatus `json:"buckets"`
	// LeftOut counts, by bucket, the parts that used less than the listed ones.
	LeftOut map[string]int `json:"left_out,omitempty" doc:"parts that are not listed, by bucket"`

	// Denied holds the denials of the last 24 hours by job.
	Denied []DenialRow `json:"denied,omitempty"`

	At time.Time `json:"-"` // by the ledger's clock
}

// BucketStatus holds the units left in a bucket, under each of its limits. A bucket without limits
// is included while it is suspended.
type BucketStatus struct {
	Bucket string `json:"bucket"`
	// Per and Value name the label and the value of a split bucket's part: label:team, ci.
	Per   string  `json:"per,omitempty"`
	Value *string `json:"value,omitempty"`
	Held  int64   `json:"held"`
	Suspension
	Limits []LimitStatus `json:"limits"`
	Unit   string        `json:"unit"`    // units, tokens, usd/1000000
	AtMost int64         `json:"at_most"` // units that the open holds can use at most
	// Overshoot is how many units estimated calls in flight can together exceed the limits by.
	Overshoot int64 `json:"overshoot"`

	Counts costs.Unit `json:"-"` // Unit
}

// Suspension holds the end, author, time and reason of a bucket's suspension. All but the end are
// left out if the bucket is not suspended.
type Suspension struct {
	SuspendedUntil words.Time `json:"suspended_until"`
	SuspendedBy    string     `json:"suspended_by,omitempty"` // upstream, or the name of a person
	SuspendedSince words.Time `json:"suspended_since,omitzero"`
	Reason         string     `json:"reason,omitempty"`
}

// NewSuspension returns the suspension of a bucket from the ledger.
func NewSuspension(u quota.BucketUsage) Suspension {
	return Suspension{words.Time(u.SuspendedUntil), u.SuspendedBy, words.Time(u.SuspendedSince),
		u.Reason}
}

// Text returns "until 08:00, by alice since 07:12: the key leaked". The caller formats the times.
func (s Suspension) Text(until string, moment func(time.Time) string) string {
	text := "until " + until
	if s.SuspendedBy != "" {
		text += ", by " + words.Plain(s.SuspendedBy)
	}
	if at := time.Time(s.SuspendedSince); !at.IsZero() {
		text += " since " + moment(at)
	}
	if s.Reason != "" {
		text += ": " + words.Plain(s.Reason)
	}
	return text
}

// LimitStatus holds the units left now under one limit.
type LimitStatus struct {
	Window     string     `json:"window"`
	Timezone   *string    `json:"timezone"`
	Units      int64      `json:"units"`
	Headroom   int64      `json:"headroom"`
	Used       int64      `json:"used"`
	Remaining  int64      `json:"remaining"`
	NextFreeAt words.Time `json:"next_free_at"`
	Others     int64      `json:"others"`   // units of Used by other programs
	ResetAt    words.Time `json:"reset_at"` // null for a window that does not end as a whole
	CountsFrom words.Time `json:"counts_from,omitzero"`
	// Mode is observe for a limit that denies nothing.
	Mode string `json:"mode,omitempty"`
}

func newCredentialStatus(c config.Credential, table *costs.Table,
	usage quota.Usage) CredentialStatus {
	out := CredentialStatus{Credential: c.Name, Mode: c.Mode(), Buckets: []BucketStatus{},
		LeftOut: usage.LeftOut, At: usage.At}
	for _, b := range usage.Buckets {
		unit := UnitOf(table, b.Bucket)
		bucket := BucketStatus{Bucket: b.Bucket, Held: b.Held, AtMost: b.AtMost,
			Suspension: NewSuspension(b), Limits: []LimitStatus{}, Unit: unit.String(),
			Counts: unit, Overshoot: overshoot(c, table, b)}
		if _, label, value, ok := quota.ParseLabelBucket(b.Bucket); ok {
			bucket.Per, bucket.Value = "label:"+label, &value
		}
		for _, l := range b.Limits {
			bucket.Limits = append(bucket.Limits, LimitStatus{
				Window: l.Limit.Window.Text(), Timezone: words.OrNull(l.Limit.Window.ZoneName()),
				Units: l.Limit.Units, Headroom: l.Limit.Headroom,
				Used: l.Used, Remaining: l.Remaining, NextFreeAt: words.Time(l.NextFreeAt),
				ResetAt: words.Time(b.Ends(l.Limit.Window, usage.At)),
				Others:  l.Others, CountsFrom: words.Time(l.CountsFrom),
				Mode: LimitMode(l.Limit),
			})
		}
		out.Buckets = append(out.Buckets, bucket)
	}
	return out
}

// overshoot returns the maximum error of estimates: of those in flight, or of all that the ledger
// allows at once if that is more.
func overshoot(c config.Credential, table *costs.Table, b quota.BucketUsage) int64 {
	var limits []quota.Limit
	for _, l := range b.Limits {
		limits = append(limits, l.Limit)
	}
	bound := b.AtMost - b.Held
	if slack := quota.Slack(limits); slack < quota.MaxTotal && !c.Observe &&
		table.Estimated(b.Bucket) {
		bound = max(bound, slack)
	}
	return bound
}

// LimitMode returns the mode of a limit; "" for an enforced one.
func LimitMode(l quota.Limit) string {
	if l.Observe {
		return "observe"
	}
	return ""
}

// Status reads the remaining quota from the ledger.
func (s Source) Status(ctx context.Context) (out Status, err error) {
	out.Ledger = config.HidePassword(s.Config.Ledger)
	if s.Config.File != "" {
		file, err := filepath.Abs(s.Config.File)
		if err != nil {
			return out, err
		}
		out.Config = &file
	}
	for _, c := range s.Config.Credentials {
		usage, err := s.Usage(ctx, c)
		if err != nil {
			return out, err
		}
		status := newCredentialStatus(c, s.Config.Table(c), usage)
		denied, err := s.Denied(ctx, c.Name, "", quota.LabelJob,
			Span{Since: usage.At.Add(-24 * time.Hour)})
		if err != nil {
			return out, err
		}
		status.Denied = denied.Rows
		out.Credentials = append(out.Credentials, status)
	}
	return out, nil
}

// Usage reads the usage of a credential's limits from the ledger. It includes suspended buckets
// without a limit.
func (s Source) Usage(ctx context.Context, c config.Credential) (quota.Usage, error) {
	usage, err := s.budget(c).Usage(ctx)
	if err != nil {
		return usage, err
	}
	var limited []string
	for _, b := range usage.Buckets {
		limited = append(limited, b.Bucket)
	}
	var limits []quota.Limit // limits through which the buckets' usage is read
	for _, bucket := range LogBuckets(s.Config, c, limited)[len(limited):] {
		limits = append(limits,
			quota.Limit{Bucket: bucket, Units: quota.MaxUnits, Window: quota.Sliding(time.Hour)})
	}
	if len(limits) == 0 {
		return usage, nil
	}
	others, err := s.Ledger.Usage(ctx, c.Name, limits)
	for _, b := range others.Buckets {
		if b.Limits = nil; !b.SuspendedUntil.IsZero() {
			usage.Buckets = append(usage.Buckets, b)
		}
	}
	return usage, err
}

// UnitOf returns the unit of a bucket, a part or a label's value; "units" if the price list names
// none.
func UnitOf(t *costs.Table, bucket string) costs.Unit {
	if b, ok := t.Bucket(quota.WholeOf(bucket)); ok {
		return b.Unit
	}
	return costs.Unit{Name: "units", Scale: 1}
}
