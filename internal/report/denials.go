package report

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// ByHour groups denials by the hour instead of by a label.
const ByHour = "hour"

// Denials are denied charges, summed by a label or by the hour.
type Denials struct {
	By   string      `json:"by"`
	Rows []DenialRow `json:"rows"`
}

// DenialRow sums the denials with one key in one bucket.
type DenialRow struct {
	Key     string     `json:"key"` // the label's value, "" for none; or the start of the hour
	Bucket  string     `json:"bucket"`
	Denials int64      `json:"denials"`
	Units   int64      `json:"units"` // units that were requested
	Limit   string     `json:"limit"` // limit of the last denial
	LastAt  words.Time `json:"last_at"`
}

// DenialsBy sums denials: hours in order of time, other keys with the most denials first.
func DenialsBy(by string, all []quota.Denial) Denials {
	type key struct{ key, bucket string }
	sums := make(map[key]DenialRow)
	for _, d := range all {
		k := key{d.Labels[by], d.Bucket}
		if by == ByHour {
			k.key = d.Hour.UTC().Format(time.RFC3339)
		}
		row := sums[k]
		row.Key, row.Bucket = k.key, k.bucket
		row.Denials += d.Count
		row.Units += d.Units
		if !d.LastAt.Before(time.Time(row.LastAt)) {
			row.LastAt, row.Limit = words.Time(d.LastAt), d.Limit
		}
		sums[k] = row
	}
	return Denials{by, sorted(sums, func(a, b DenialRow) int {
		order := cmp.Compare(b.Denials, a.Denials)
		if by == ByHour {
			order = 0
		}
		return cmp.Or(order, cmp.Compare(a.Key, b.Key), cmp.Compare(a.Bucket, b.Bucket))
	})}
}

// Denied sums the denials of a credential in a span of time.
func (s Source) Denied(ctx context.Context, credential, bucket, by string, in Span) (
	Denials, error) {
	all, err := s.Ledger.Denials(ctx, credential, in.Since)
	all = slices.DeleteFunc(all, func(d quota.Denial) bool {
		return !in.Until.IsZero() && d.Hour.After(in.Until) || bucket != "" && d.Bucket != bucket
	})
	return DenialsBy(by, all), err
}

// DeniedJobs returns the denials of each job, such as "12 of backfill, 3 of crawl", the most first;
// "" if there are none.
func DeniedJobs(rows []DenialRow) string {
	const shown = 5
	sums := make(map[string]int64)
	for _, row := range rows {
		sums[row.Key] += row.Denials
	}
	jobs := slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
	var parts []string
	for i, job := range jobs {
		if i == shown {
			parts = append(parts, fmt.Sprintf("%d more", len(jobs)-shown))
			break
		}
		parts = append(parts, fmt.Sprintf("%d of %s", sums[job], cmp.Or(job, "no job")))
	}
	return strings.Join(parts, ", ")
}

// Decision is a quota.Decision in JSON. The keys of the first group are always present.
type Decision struct {
	Allowed           bool             `json:"allowed"`
	Units             map[string]int64 `json:"units"`
	Remaining         map[string]int64 `json:"remaining"`
	RetryAfterSeconds *int64           `json:"retry_after_seconds"`
	RetryAt           words.Time       `json:"retry_at"`
	Never             bool             `json:"never"`
	Limit             *string          `json:"limit"`
	Entry             *string          `json:"entry"`

	Replayed  bool `json:"replayed,omitempty"`
	Observed  bool `json:"observed,omitempty"`
	Unmetered bool `json:"unmetered,omitempty"`
	DryRun    bool `json:"dry_run,omitempty"`
}

// NewDecision returns the JSON form of a decision.
func NewDecision(d quota.Decision, dryRun bool) Decision {
	out := Decision{
		Allowed: d.Allowed, Units: d.Units, Remaining: d.Remaining, RetryAt: words.Time(d.RetryAt),
		Never: d.Never, Limit: words.OrNull(d.Limit), Entry: words.OrNull(d.Entry),
		Replayed: d.Replayed, Observed: d.Observed, Unmetered: d.Unmetered, DryRun: dryRun,
	}
	if out.Remaining == nil {
		out.Remaining = map[string]int64{}
	}
	if !d.RetryAt.IsZero() {
		out.RetryAfterSeconds = new(max(0, words.Seconds(d.RetryAt.Sub(d.At))))
	}
	return out
}
