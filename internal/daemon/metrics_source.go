package daemon

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/catalog"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// readTime limits a read of the ledger or the catalogue at a scrape. Prometheus by default gives up
// after 10 seconds, and then loses all other metrics too.
const readTime = 2 * time.Second

// source is a collector that reads its values at each scrape. If a read fails or takes too long,
// the gauge up is 0, and the other metrics are exported without them.
type source struct {
	name string
	up   gauge
	log  *slog.Logger
	// read reads and exports the values. It returns false if there is nothing to read yet.
	read func(ctx context.Context, out scrape) (bool, error)
	down atomic.Bool // the last read failed
}

type scrape chan<- prometheus.Metric

type gauge struct {
	name, help string
	labels     []string
}

func (s scrape) set(g gauge, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(prometheus.NewDesc(g.name, g.help, g.labels, nil),
		prometheus.GaugeValue, value, labels...)
}

// Describe implements prometheus.Collector. It describes nothing, because the metrics depend on the
// values read.
func (s *source) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *source) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	some, err := s.read(ctx, out)
	if !some {
		return
	}
	switch was := s.down.Swap(err != nil); {
	case err != nil && !was:
		s.log.Warn("metrics are incomplete: cannot read this source",
			"source", s.name, "error", err)
	case err == nil && was:
		s.log.Info("metrics are complete again", "source", s.name)
	}
	scrape(out).set(s.up, truth(err == nil))
}

func truth(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

// timestamp returns a time in Unix seconds, as Prometheus expects, or 0 for the zero time.
func timestamp(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMicro()) / 1e6
}

// BuildInfo returns a collector of the program's version.
func BuildInfo(program string) prometheus.Collector {
	own, toolchain := report.Version()
	labels := prometheus.Labels{"program": program, "version": own, "goversion": toolchain}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quotabudget_build_info",
		Help: "Which version of which program this is; always 1.", ConstLabels: labels,
	}, func() float64 { return 1 })
}

// NewChartMetrics returns a collector of metrics about the regions' charts. current returns the
// catalogue, or nil if there is none yet, and the regions. Set ages to false for metrics that are
// written to a file and read later.
func NewChartMetrics(current func() (*catalog.Catalog, []string), ages bool,
	log *slog.Logger) prometheus.Collector {
	region := []string{"region"}
	success := gauge{"ingest_last_success_timestamp_seconds",
		"When the region's last chart was complete; 0 for a region that has none.", region}
	chartAge := gauge{"ingest_chart_age_seconds",
		"Time since the region's last chart was complete; +Inf for a region that has none.", region}
	unavailable := gauge{"ingest_region_unavailable",
		"Whether the upstream's last answer was that it has no chart for the region.", region}
	read := func(ctx context.Context, out scrape) (bool, error) {
		charts, regions := current()
		if charts == nil {
			return false, nil
		}
		states, err := charts.Staleness(ctx, regions)
		for _, s := range states {
			age := math.Inf(1)
			if !s.CompletedAt.IsZero() {
				age = time.Since(s.CompletedAt).Seconds()
			}
			out.set(success, timestamp(s.CompletedAt), s.Region)
			out.set(unavailable, truth(!s.UnavailableAt.IsZero()), s.Region)
			if ages {
				out.set(chartAge, age, s.Region)
			}
		}
		return true, err
	}
	up := gauge{"ingest_catalog_up", "Whether the catalogue answered when the metrics were read.",
		nil}
	return &source{name: "catalogue", up: up, log: log, read: read}
}

// Gauges of a budget, by credential and bucket, and by window.
var (
	perBucket = []string{"credential", "bucket"}
	perWindow = append(perBucket, "window", "timezone")

	limitUnits = gauge{"quota_limit_units",
		"Units that may be taken in the window, including the headroom.", perWindow}
	headroomUnits = gauge{"quota_headroom_units",
		"Units of the limit that are kept for people.", perWindow}
	usedUnits = gauge{"quota_used_units", "Units charged in the window.", perWindow}
	heldUnits = gauge{"quota_held_units",
		"Units that reservations hold in the bucket; they count against each limit.", perWindow}
	remainingUnits = gauge{"quota_remaining_units",
		"Units that the limit leaves for scheduled charges.", perWindow}
	resetTime = gauge{"quota_reset_timestamp_seconds",
		"When the window ends, by the calendar or the upstream; others have no end.",
		perWindow}
	suspended = gauge{"quota_suspended",
		"Whether the bucket is suspended, by the upstream or by a person.", perBucket}
	suspendedUntil = gauge{"quota_suspended_until_timestamp_seconds",
		"When the suspension of the bucket ends; 0 if it is not suspended.", perBucket}
	outageUnits = gauge{"quota_outage_remaining_units",
		"Units that this host may spend while the ledger cannot be reached.", perBucket}
	journalLines = gauge{"quota_journal_lines",
		"Calls in this host's journal, which the ledger does not have yet.", perBucket[:1]}
)

// NewBudgetMetrics returns a collector of the usage of budgets. current returns the budgets, one
// per credential.
func NewBudgetMetrics(current func() []*quota.Budget, log *slog.Logger) prometheus.Collector {
	read := func(ctx context.Context, out scrape) (bool, error) {
		budgets := current()
		for _, b := range budgets {
			if err := out.journal(b); err != nil {
				log.Warn("cannot read the journal", "credential", b.Credential, "error", err)
			}
		}
		var usages []quota.Usage
		for _, b := range budgets {
			usage, err := b.Usage(ctx)
			if err != nil {
				return true, err
			}
			usages = append(usages, usage)
		}
		for i, usage := range usages {
			for _, bucket := range usage.Buckets {
				out.bucket(budgets[i].Credential, usage.At, bucket)
			}
		}
		return len(budgets) > 0, nil
	}
	up := gauge{"quota_ledger_up", "Whether the ledger answered when the metrics were read.", nil}
	return &source{name: "ledger", up: up, log: log, read: read}
}

// journal exports the values that need no ledger.
func (s scrape) journal(b *quota.Budget) error {
	if b.Journal == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	now, err := b.Outage(ctx)
	if err != nil {
		return err
	}
	s.set(journalLines, float64(now.Waiting), b.Credential)
	for _, left := range now.Left {
		s.set(outageUnits, float64(left.Units), b.Credential, left.Bucket)
	}
	return nil
}

func (s scrape) bucket(credential string, now time.Time, u quota.BucketUsage) {
	closed, until := u.SuspendedUntil.After(now), 0.0
	if closed {
		until = timestamp(u.SuspendedUntil)
	}
	s.set(suspended, truth(closed), credential, u.Bucket)
	s.set(suspendedUntil, until, credential, u.Bucket)
	for _, l := range tightest(u.Limits) {
		window := l.Limit.Window
		labels := []string{credential, u.Bucket, window.Text(), window.ZoneName()}
		s.set(limitUnits, float64(l.Limit.Units), labels...)
		s.set(headroomUnits, float64(l.Limit.Headroom), labels...)
		s.set(usedUnits, float64(l.Used), labels...)
		s.set(heldUnits, float64(u.Held), labels...)
		s.set(remainingUnits, float64(l.Remaining), labels...)
		if reset := u.Ends(window, now); !reset.IsZero() {
			s.set(resetTime, timestamp(reset), labels...)
		}
	}
}

// tightest returns, for each window, the limit with the fewest units left. Two limits of one window
// would be the same series.
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
