package metrics

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/quota"
)

// Budget asks the ledger how a budget stands whenever the metrics are read. Where the ledger does
// not answer in time, the other metrics are there without it, and quota_ledger_up is 0. NewBudget
// makes it.
type Budget struct {
	of     func() *quota.Budget
	ledger source

	up, limit, headroom, used, held, remaining, reset *prometheus.Desc
	suspended, until                                  *prometheus.Desc
}

// NewBudget is for the budget that of returns at the time; nil for none yet.
func NewBudget(of func() *quota.Budget, log *slog.Logger) *Budget {
	bucket := []string{"credential", "bucket"}
	limit := append(bucket, "window", "timezone")
	return &Budget{
		of: of, ledger: source{name: "ledger", log: log},
		up: desc("quota_ledger_up", "Whether the ledger answered when the metrics were read."),
		limit: desc("quota_limit_units",
			"Units that may be taken in the window, the headroom included.", limit...),
		headroom: desc("quota_headroom_units", "Units of the limit that are kept for people.",
			limit...),
		used: desc("quota_used_units", "Units charged in the window.", limit...),
		held: desc("quota_held_units",
			"Units that reservations hold in the bucket; they count against each limit.", limit...),
		remaining: desc("quota_remaining_units",
			"Units that the limit leaves for scheduled charges.", limit...),
		reset: desc("quota_reset_timestamp_seconds",
			"When the calendar window ends; a sliding window has no reset.", limit...),
		suspended: desc("quota_suspended",
			"Whether the bucket is closed, by the upstream or by a person.", bucket...),
		until: desc("quota_suspended_until_timestamp_seconds",
			"When the suspension of the bucket ends; 0 when it is open.", bucket...),
	}
}

// Describe implements prometheus.Collector.
func (b *Budget) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{b.up, b.limit, b.headroom, b.used, b.held, b.remaining,
		b.reset, b.suspended, b.until} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (b *Budget) Collect(out chan<- prometheus.Metric) {
	budget := b.of()
	if budget == nil {
		return
	}
	var usage quota.Usage
	err := b.ledger.ask(func(ctx context.Context) (err error) {
		usage, err = budget.Usage(ctx)
		return err
	})
	out <- gauge(b.up, truth(err == nil))
	for _, bucket := range usage.Buckets {
		b.bucket(out, budget.Credential, usage.At, bucket)
	}
}

func (b *Budget) bucket(out chan<- prometheus.Metric, credential string, now time.Time,
	u quota.BucketUsage) {
	closed, until := u.SuspendedUntil.After(now), 0.0
	if closed {
		until = timestamp(u.SuspendedUntil)
	}
	out <- gauge(b.suspended, truth(closed), credential, u.Bucket)
	out <- gauge(b.until, until, credential, u.Bucket)
	for _, l := range tightest(u.Limits) {
		window := l.Limit.Window
		labels := []string{credential, u.Bucket, window.Text(), window.ZoneName()}
		out <- gauge(b.limit, float64(l.Limit.Units), labels...)
		out <- gauge(b.headroom, float64(l.Limit.Headroom), labels...)
		out <- gauge(b.used, float64(l.Used), labels...)
		out <- gauge(b.held, float64(u.Held), labels...)
		out <- gauge(b.remaining, float64(l.Remaining), labels...)
		if window.IsCalendar() {
			_, reset := window.Bounds(now)
			out <- gauge(b.reset, timestamp(reset), labels...)
		}
	}
}

// tightest are the limits with one for each window, the one that leaves least: two would be the
// same series.
func tightest(limits []quota.LimitUsage) (picked []quota.LimitUsage) {
	at := make(map[string]int)
	for _, l := range limits {
		i, known := at[l.Limit.Window.String()]
		switch {
		case !known:
			at[l.Limit.Window.String()] = len(picked)
			picked = append(picked, l)
		case l.Remaining < picked[i].Remaining:
			picked[i] = l
		}
	}
	return picked
}
