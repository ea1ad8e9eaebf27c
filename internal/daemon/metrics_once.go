package daemon

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/ingest"
)

// OnceMetrics is the result of a process that sweeps once. Each process overwrites the previous
// one's file, so the metrics are gauges: counters would start from 0 every time.
type OnceMetrics struct {
	Began    time.Time
	ExitCode int
	Summary  ingest.Summary // for a sweep that never began, only an Outcome of Failed
}

// Registry returns a registry with the current metrics.
func (o OnceMetrics) Registry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	one := func(name, help string, value float64) {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		g.Set(value)
		registry.MustRegister(g)
	}
	many := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		registry.MustRegister(g)
		return g
	}
	now := time.Now()
	one("ingest_once_timestamp_seconds", "When the last sweep ended, however it did.",
		timestamp(now))
	one("ingest_once_duration_seconds", "How long the last sweep took.", now.Sub(o.Began).Seconds())
	one("ingest_once_exit_code",
		"The exit code of the last sweep: 0 done, 75 exhausted; others are failures.",
		float64(o.ExitCode))
	outcomes := many("ingest_once_outcome",
		"1 for the outcome of the last sweep, 0 for the others.", "outcome")
	for _, outcome := range []ingest.Outcome{ingest.Complete, ingest.Exhausted, ingest.Partial,
		ingest.Failed} {
		outcomes.WithLabelValues(string(outcome)).Set(truth(outcome == o.Summary.Outcome))
	}
	units := many("ingest_once_units", "Units that the last sweep was charged.", "bucket")
	for bucket, n := range o.Summary.Units {
		units.WithLabelValues(bucket).Set(float64(n))
	}
	failed := many("ingest_once_region_failed",
		"1 for a region that failed in the last sweep, by what kept it from its chart.", "region",
		"kind")
	for _, r := range o.Summary.Regions {
		if r.Outcome == ingest.Failed {
			failed.WithLabelValues(r.Region, failureKind(r.Err())).Set(1)
		}
	}
	return registry
}
