package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/quota"
)

// BudgetMetrics reads the usage of budgets from the ledger at each scrape. If the ledger does not
// answer in time, quota_ledger_up is 0, and the other metrics are exported without it.
// NewBudgetMetrics makes it.
type BudgetMetrics struct {
	of func() []*quota.Budget
	*source

	limit, headroom, used, held, remaining *prometheus.Desc
	reset, suspended, until                *prometheus.Desc
	without, waiting                       *prometheus.Desc
}

// NewBudgetMetrics is for the budgets that of returns at the time, each of another credential.
func NewBudgetMetrics(of func() []*quota.Budget, log *slog.Logger) *BudgetMetrics {
	bucket := []string{"credential", "bucket"}
	limit := append(bucket, "window", "timezone")
	s := newSource("ledger", "quota_ledger_up", log)
	return &BudgetMetrics{
		of: of, source: s,
		limit: s.desc("quota_limit_units",
			"Units that may be taken in the window, the headroom included.", limit...),
		headroom: s.desc("quota_headroom_units", "Units of the limit that are kept for people.",
			limit...),
		used: s.desc("quota_used_units", "Units charged in the window.", limit...),
		held: s.desc("quota_held_units",
			"Units that reservations hold in the bucket; they count against each limit.", limit...),
		remaining: s.desc("quota_remaining_units",
			"Units that the limit leaves for scheduled charges.", limit...),
		reset: s.desc("quota_reset_timestamp_seconds",
			"When the window ends, by the calendar or as the upstream says; others have no end.",
			limit...),
		suspended: s.desc("quota_suspended",
			"Whether the bucket is suspended, by the upstream or by a person.", bucket...),
		until: s.desc("quota_suspended_until_timestamp_seconds",
			"When the suspension of the bucket ends; 0 if it is not suspended.", bucket...),
		without: s.desc("quota_outage_remaining_units",
			"Units that this host may spend while the ledger cannot be reached.", bucket...),
		waiting: s.desc("quota_journal_lines", "Calls in this host's journal, which the ledger "+
			"does not have yet.", "credential"),
	}
}

// Collect implements prometheus.Collector.
func (b *BudgetMetrics) Collect(out chan<- prometheus.Metric) {
	budgets := b.of()
	if len(budgets) == 0 {
		return
	}
	usages := make([]quota.Usage, len(budgets))
	b.read(out, func(ctx context.Context) (err error) {
		for i, budget := range budgets {
			if usages[i], err = budget.Usage(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	for _, budget := range budgets {
		b.outage(out, budget)
	}
	for i, usage := range usages {
		for _, bucket := range usage.Buckets {
			b.bucket(out, budgets[i].Credential, usage.At, bucket)
		}
	}
}

// outage exports what is known without the ledger.
func (b *BudgetMetrics) outage(out chan<- prometheus.Metric, budget *quota.Budget) {
	if budget.Journal == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	now, err := budget.Outage(ctx)
	if err != nil {
		b.log.Warn("cannot read the journal", "credential", budget.Credential, "error", err)
		return
	}
	out <- gauge(b.waiting, float64(now.Waiting), budget.Credential)
	for _, left := range now.Left {
		out <- gauge(b.without, float64(left.Units), budget.Credential, left.Bucket)
	}
}

func (b *BudgetMetrics) bucket(out chan<- prometheus.Metric, credential string, now time.Time,
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
		if reset := u.Ends(window, now); !reset.IsZero() {
			out <- gauge(b.reset, timestamp(reset), labels...)
		}
	}
}

// tightest is the limit of each window that leaves least: two would be the same series.
func tightest(limits []quota.LimitUsage) map[string]quota.LimitUsage {
	picked := make(map[string]quota.LimitUsage)
	for _, l := range limits {
		window := l.Limit.Window.String()
		if other, ok := picked[window]; !ok || l.Remaining < other.Remaining {
			picked[window] = l
		}
	}
	return picked
}
