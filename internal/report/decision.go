package report

import (
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

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
