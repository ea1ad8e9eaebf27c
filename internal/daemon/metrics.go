package daemon

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
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
	panics    prometheus.Counter
	takeovers prometheus.Counter
	reloads   *prometheus.CounterVec
	outlook   outlook
}

// NewMetrics makes an empty set of metrics.
func NewMetrics() *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		spent: counters("quota_units_spent_total", "Units charged by this process.",
			"credential", "bucket", "method", "region"),
		cancelled: counters("quota_units_cancelled_total", "Units of quota_units_spent_total that were taken back: the call never left.",
			"credential", "bucket", "method", "region"),
		denials: counters("quota_denials_total", "Charges denied to this process, by the limit that denied longest.",
			"credential", "limit"),
		asked: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quota_ledger_duration_seconds", Help: "How long the ledger took to answer.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 14),
		}, []string{"operation"}),
		failed: counters("quota_ledger_failures_total", "Questions that the ledger could not be asked.", "operation"),
		sweeps: counters("ingest_sweeps_total", "Ticks that this process has seen to their end, by outcome.", "outcome"),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingest_runs_panicked_total", Help: "Runs that ended in a panic."}),
		takeovers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingest_takeovers_total", Help: "Ticks taken over from a daemon that was not heard of for a lease."}),
		reloads: counters("ingest_reloads_total", "Configurations read anew, by whether they were accepted.", "result"),
		outlook: newOutlook(),
	}
	m.Registry.MustRegister(m.spent, m.cancelled, m.denials, m.asked, m.failed, m.sweeps, m.panics, m.takeovers, m.reloads, m.outlook.dry, m.outlook.chance,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, outcome := range []string{"complete", "exhausted", "partial", "failed", leftOut, paced, overtaken, panicked} {
		m.sweeps.WithLabelValues(outcome)
	}
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}
