package daemon

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// standing is what is asked of ledger and catalogue when the metrics are read.
type standing struct {
	daemon    *Daemon
	remaining *prometheus.Desc
	suspended *prometheus.Desc
	age       *prometheus.Desc
}

// askTime is how long ledger and catalogue may take to say how things stand.
const askTime = 2 * time.Second

func newStanding(d *Daemon) *standing {
	return &standing{
		daemon: d,
		remaining: prometheus.NewDesc("quota_remaining_units", "Units that a limit leaves for scheduled charges.",
			[]string{"credential", "bucket", "window"}, nil),
		suspended: prometheus.NewDesc("quota_suspended", "Whether the upstream has closed the bucket.",
			[]string{"credential", "bucket"}, nil),
		age: prometheus.NewDesc("ingest_chart_age_seconds", "Time since the region's last complete chart.",
			[]string{"region"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (s *standing) Describe(out chan<- *prometheus.Desc) {
	out <- s.remaining
	out <- s.suspended
	out <- s.age
}

// Collect implements prometheus.Collector. What does not answer is left out, and logged.
func (s *standing) Collect(out chan<- prometheus.Metric) {
	w := s.daemon.now.Load()
	if w == nil {
		return
	}
	ctx := context.Background()
	if err := asked(ctx, func(ctx context.Context) error { return s.budget(ctx, w, out) }); err != nil {
		s.daemon.Log.Warn("metrics are without the budget", "error", err)
	}
	if err := asked(ctx, func(ctx context.Context) error { return s.charts(ctx, w, out) }); err != nil {
		s.daemon.Log.Warn("metrics are without the charts", "error", err)
	}
}

func (s *standing) budget(ctx context.Context, w *Work, out chan<- prometheus.Metric) error {
	usage, err := w.Sweep.Budget.Usage(ctx)
	if err != nil {
		return err
	}
	credential := w.Sweep.Budget.Credential
	for _, b := range usage.Buckets {
		closed := 0.0
		if b.SuspendedUntil.After(usage.At) {
			closed = 1
		}
		out <- prometheus.MustNewConstMetric(s.suspended, prometheus.GaugeValue, closed, credential, b.Bucket)
		seen := make(map[string]bool)
		for _, l := range b.Limits {
			if window := l.Limit.Window.String(); !seen[window] {
				seen[window] = true
				out <- prometheus.MustNewConstMetric(s.remaining, prometheus.GaugeValue, float64(l.Remaining), credential, b.Bucket, window)
			}
		}
	}
	return nil
}

func (s *standing) charts(ctx context.Context, w *Work, out chan<- prometheus.Metric) error {
	states, err := w.Sweep.Catalog.Staleness(ctx, w.regions())
	if err != nil {
		return err
	}
	for _, state := range states {
		if !state.CompletedAt.IsZero() {
			out <- prometheus.MustNewConstMetric(s.age, prometheus.GaugeValue, time.Since(state.CompletedAt).Seconds(), state.Region)
		}
	}
	return nil
}

func (w *Work) regions() []string {
	names := make([]string, len(w.Lanes))
	for i, l := range w.Lanes {
		names[i] = l.Region
	}
	return names
}
