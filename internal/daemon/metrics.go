package daemon

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quotabudget/internal/catalog"
	"quotabudget/internal/quota"
)

// Metrics are a daemon's metrics, in their own registry. NewMetrics creates them.
type Metrics struct {
	Registry *prometheus.Registry

	spent, cancelled, denials, observed *prometheus.CounterVec
	ledgerTime                          *prometheus.HistogramVec
	ledgerFailures                      *prometheus.CounterVec
	sweeps, failures, jobs              *prometheus.CounterVec
	interval                            *prometheus.GaugeVec
	jobSuccess, jobInterval             *prometheus.GaugeVec
	panics, takeovers                   prometheus.Counter
	dryAt, dryEarliest                  *prometheus.GaugeVec
	reload                              reloadMetrics
	upstream                            *prometheus.HistogramVec
}

// NewMetrics returns metrics without values.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	auto := promauto.With(registry)
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauges := gaugesOf(registry)
	m := &Metrics{
		Registry: registry,
		spent: counters("quota_units_spent_total", "Units charged by this process.",
			"credential", "bucket", "method", "region"),
		cancelled: counters("quota_units_cancelled_total",
			"Units of quota_units_spent_total that were cancelled: the call never left.",
			"credential", "bucket", "method", "region"),
		denials: counters("quota_denials_total",
			"Charges denied to this process, by the limit that denied longest.",
			"credential", "limit"),
		observed: counters("quota_observed_total",
			"Charges by this process that an observed limit would have denied.",
			"credential", "limit"),
		ledgerTime: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quota_ledger_duration_seconds", Help: "How long the ledger took to answer.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 14),
		}, []string{"operation"}),
		ledgerFailures: counters("quota_ledger_failures_total",
			"Ledger calls that failed.", "operation"),
		sweeps: counters("ingest_sweeps_total",
			"Ticks that this process has completed, by outcome.", "outcome"),
		failures: counters("ingest_failures_total",
			"Runs that failed, by region and by what kept them from their chart.",
			"region", "kind"),
		jobs: counters("ingest_jobs_total",
			"Ticks of command jobs that this process has completed, by outcome.",
			"job", "outcome"),
		jobSuccess: gauges("ingest_job_last_success_timestamp_seconds",
			"When a run of the job last ended with success in this process.", "job"),
		jobInterval: gauges("ingest_job_interval_seconds",
			"The longest time between two ticks of the job in the days to come.", "job"),
		interval: gauges("ingest_interval_seconds",
			"The longest time between two ticks of the region in the days to come.", "region"),
		panics: counters("ingest_runs_panicked_total",
			"Runs that ended in a panic.").WithLabelValues(),
		takeovers: counters("ingest_takeovers_total",
			"Ticks taken over from a daemon whose lease lapsed.").WithLabelValues(),
		dryAt: gauges("quota_forecast_dry_timestamp_seconds",
			"When the bucket is forecast to run dry, as Unix time; +Inf if it lasts to its reset.",
			"credential", "bucket"),
		dryEarliest: gauges("quota_forecast_dry_earliest_timestamp_seconds",
			"When the bucket runs dry at the earliest, as Unix time; +Inf if it lasts to its reset.",
			"credential", "bucket"),
		reload: reloadMetrics{
			total: counters("ingest_reloads_total",
				"Configurations reloaded, by whether they were accepted.", "result"),
			successful: gauges("ingest_config_last_reload_successful",
				"Whether the last configuration that was loaded was accepted.").WithLabelValues(),
			succeeded: gauges("ingest_config_last_reload_success_timestamp_seconds",
				"When the configuration in force was loaded.").WithLabelValues(),
		},
		upstream: newUpstreamTime(),
	}
	registry.MustRegister(m.upstream, BuildInfo("ingestor"), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.initialise()
	return m
}

// gaugesOf returns a function that adds gauges to a registry.
func gaugesOf(registry *prometheus.Registry) func(name, help string,
	labels ...string) *prometheus.GaugeVec {
	return func(name, help string, labels ...string) *prometheus.GaugeVec {
		return promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help},
			labels)
	}
}

// initialise creates the series that are known in advance, because a rate misses the increase with
// which a series appears.
func (m *Metrics) initialise() {
	for _, outcome := range []string{"complete", "exhausted", "partial", "failed",
		leftOut, paced, overtaken, panicked} {
		m.sweeps.WithLabelValues(outcome)
	}
	for _, operation := range []string{"charge", "cancel", "usage", "sums", "between",
		"suspend", "claim", "finish", "reserve", "settle"} {
		m.ledgerTime.WithLabelValues(operation)
		m.ledgerFailures.WithLabelValues(operation)
	}
	m.reload.total.WithLabelValues("accepted")
	m.reload.total.WithLabelValues("refused")
	m.reload.successful.Set(1)
	m.reload.succeeded.SetToCurrentTime()
}

// inForce creates the series that a configuration implies.
func (m *Metrics) inForce(c *Config, now time.Time) {
	for _, p := range c.policies() {
		name := p.Budget.Credential
		m.denials.WithLabelValues(name, quota.Suspended)
		for _, l := range slices.Concat(p.Budget.Limits, p.Budget.Paces) {
			m.denials.WithLabelValues(name, l.Name())
			m.observed.WithLabelValues(name, l.Name())
		}
	}
	m.interval.Reset() // a region may have been removed
	m.jobInterval.Reset()
	for _, l := range c.Lanes {
		b := l.Work.policy().Budget
		if l.Region == "" {
			m.jobInterval.WithLabelValues(l.Job).Set(l.LongestInterval(now).Seconds())
			for _, outcome := range jobOutcomes {
				m.jobs.WithLabelValues(l.Job, outcome)
			}
			continue
		}
		m.interval.WithLabelValues(l.Region).Set(l.LongestInterval(now).Seconds())
		for _, kind := range failureKinds() {
			m.failures.WithLabelValues(l.Region, kind)
		}
		for _, cost := range b.Prices[chartMethod] {
			m.spent.WithLabelValues(b.Credential, cost.Bucket, chartMethod, l.Region)
			m.cancelled.WithLabelValues(b.Credential, cost.Bucket, chartMethod, l.Region)
		}
	}
}

var jobOutcomes = []string{"complete", "exhausted", "failed", "timeout", "interrupted", leftOut,
	paced, overtaken, overlaps, lost, panicked}

// ended counts how a tick ended, for all regions together or for each job.
func (m *Metrics) ended(l *lane, outcome string) {
	if l.Region != "" {
		m.sweeps.WithLabelValues(outcome).Inc()
		return
	}
	m.jobs.WithLabelValues(l.Job, outcome).Inc()
	if outcome == "complete" {
		m.jobSuccess.WithLabelValues(l.Job).SetToCurrentTime()
	}
}

// register adds metrics that are read from ledger and catalogue at each scrape.
func (d *Daemon) register() {
	d.Metrics.Registry.MustRegister(d.ledger.gauge("ledger"), d.upstream.gauge("upstream"),
		d.catalogue.gauge("catalogue"),
		NewBudgetMetrics(func() (budgets []*quota.Budget) {
			if c := d.inForce.Load(); c != nil {
				for _, p := range c.policies() {
					budgets = append(budgets, p.Budget)
				}
			}
			return budgets
		}, d.Log),
		NewChartMetrics(func() (*catalog.Catalog, []string) {
			if c := d.inForce.Load(); c != nil {
				if sweep, regions := c.sweep(); sweep != nil {
					return sweep.Catalog, regions
				}
			}
			return nil, nil
		}, true, d.Log))
}

// reloadMetrics have the names of Prometheus' own metrics of its configuration. The first
// configuration counts as loaded.
type reloadMetrics struct {
	total                 *prometheus.CounterVec
	successful, succeeded prometheus.Gauge
}

func (m reloadMetrics) done(err error) {
	if err != nil {
		m.total.WithLabelValues("refused").Inc()
		m.successful.Set(0)
		return
	}
	m.total.WithLabelValues("accepted").Inc()
	m.successful.Set(1)
	m.succeeded.SetToCurrentTime()
}
