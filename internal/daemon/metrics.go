package daemon

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"quotabudget/internal/metrics"
)

// Metrics is what a daemon counts, in a registry of its own. NewMetrics makes it.
type Metrics struct {
	Registry *prometheus.Registry

	spent     *prometheus.CounterVec
	cancelled *prometheus.CounterVec
	denials   *prometheus.CounterVec
	asked     *prometheus.HistogramVec
	failed    *prometheus.CounterVec
	sweeps    *prometheus.CounterVec
	failures  *prometheus.CounterVec
	interval  *prometheus.GaugeVec
	panics    prometheus.Counter
	takeovers prometheus.Counter
	reload    reloadMetrics
	outlook   outlook
	upstream  *metrics.Upstream
}

// NewMetrics makes an empty set of metrics.
func NewMetrics() *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		spent: counters("quota_units_spent_total", "Units charged by this process.",
			"credential", "bucket", "method", "region"),
		cancelled: counters("quota_units_cancelled_total",
			"Units of quota_units_spent_total that were taken back: the call never left.",
			"credential", "bucket", "method", "region"),
		denials: counters("quota_denials_total",
			"Charges denied to this process, by the limit that denied longest.", "credential", "limit"),
		asked: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quota_ledger_duration_seconds", Help: "How long the ledger took to answer.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 14),
		}, []string{"operation"}),
		failed: counters("quota_ledger_failures_total",
			"Questions that the ledger could not be asked.", "operation"),
		sweeps: counters("ingest_sweeps_total",
			"Ticks that this process has seen to their end, by outcome.", "outcome"),
		failures: counters("ingest_failures_total",
			"Runs that failed, by region and by what kept them from their chart.", "region", "kind"),
		interval: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ingest_interval_seconds",
			Help: "The longest time between two ticks of the region in the days to come.",
		}, []string{"region"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingest_runs_panicked_total", Help: "Runs that ended in a panic."}),
		takeovers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingest_takeovers_total",
			Help: "Ticks taken over from a daemon that was not heard of for a lease."}),
		reload:   newReloadMetrics(),
		outlook:  newOutlook(),
		upstream: metrics.NewUpstream(chartMethod),
	}
	m.Registry.MustRegister(m.spent, m.cancelled, m.denials, m.asked, m.failed,
		m.sweeps, m.failures, m.interval, m.panics, m.takeovers, m.upstream,
		m.reload.total, m.reload.successful, m.reload.succeeded, m.outlook.dry, m.outlook.chance,
		metrics.BuildInfo("ingestor"), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.initialise()
	return m
}

// initialise makes the series that are known beforehand: a rate does not see the first increase of
// one that appears with it.
func (m *Metrics) initialise() {
	for _, outcome := range []string{"complete", "exhausted", "partial", "failed",
		leftOut, paced, overtaken, panicked} {
		m.sweeps.WithLabelValues(outcome)
	}
	for _, operation := range []string{"charge", "cancel", "usage", "entries", "suspend",
		"claim", "finish"} {
		m.asked.WithLabelValues(operation)
		m.failed.WithLabelValues(operation)
	}
}

// Measure returns base with every request to the upstream measured; name says which priced method
// it is.
func (m *Metrics) Measure(base http.RoundTripper, name metrics.Namer) http.RoundTripper {
	return m.upstream.Measure(base, name)
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}
