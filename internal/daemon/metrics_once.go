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
	gauges := gaugesOf(registry)
	now := time.Now()
	gauges("ingest_once_timestamp_seconds",
		"When the last sweep ended, whatever its outcome.").WithLabelValues().Set(timestamp(now))
	gauges("ingest_once_duration_seconds",
		"How long the last sweep took.").WithLabelValues().Set(now.Sub(o.Began).Seconds())
	gauges("ingest_once_exit_code",
		"The exit code of the last sweep: 0 done, 75 exhausted; others are failures.",
	).WithLabelValues().Set(float64(o.ExitCode))
	outcomes := gauges("ingest_once_outcome",
		"1 for the outcome of the last sweep, 0 for the others.", "outcome")
	for _, outcome := range []ingest.Outcome{ingest.Complete, ingest.Exhausted, ingest.Partial,
		ingest.Failed} {
		outcomes.WithLabelValues(string(outcome)).Set(truth(outcome == o.Summary.Outcome))
	}
	units := gauges("ingest_once_units", "Units that the last sweep was charged.", "bucket")
	for bucket, n := range o.Summary.Units {
		units.WithLabelValues(bucket).Set(float64(n))
	}
	failed := gauges("ingest_once_region_failed",
		"1 for a region that failed in the last sweep, by what kept it from its chart.", "region",
		"kind")
	for _, r := range o.Summary.Regions {
		if r.Outcome == ingest.Failed {
			failed.WithLabelValues(r.Region, failureKind(r.Err())).Set(1)
		}
	}
	return registry
}
