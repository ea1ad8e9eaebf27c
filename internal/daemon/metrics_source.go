package daemon

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/report"
)

// readTime is how long a ledger or a catalogue may take at a scrape. Prometheus gives up after 10
// seconds by default, and then loses every other metric, too.
const readTime = 2 * time.Second

// source is what a collector reads at each scrape, and its metrics.
type source struct {
	name  string
	log   *slog.Logger
	down  atomic.Bool // the last read failed
	descs []*prometheus.Desc
	up    *prometheus.Desc
}

func newSource(name, up string, log *slog.Logger) *source {
	s := &source{name: name, log: log}
	s.up = s.desc(up, "Whether the "+name+" answered when the metrics were read.")
	return s
}

func (s *source) desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	s.descs = append(s.descs, d)
	return d
}

// Describe implements prometheus.Collector.
func (s *source) Describe(out chan<- *prometheus.Desc) {
	for _, d := range s.descs {
		out <- d
	}
}

// read reads for a short while, and reports and logs whether that failed.
func (s *source) read(out chan<- prometheus.Metric, read func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	err := read(ctx)
	switch was := s.down.Swap(err != nil); {
	case err != nil && !was:
		s.log.Warn("metrics are incomplete: cannot read this source",
			"source", s.name, "error", err)
	case err == nil && was:
		s.log.Info("metrics are complete again", "source", s.name)
	}
	out <- gauge(s.up, truth(err == nil))
}

func gauge(d *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// timestamp is a time as Prometheus writes it, 0 for none.
func timestamp(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMicro()) / 1e6
}

// BuildInfo says which version of a program runs.
func BuildInfo(program string) prometheus.Collector {
	own, toolchain := report.Version()
	labels := prometheus.Labels{"program": program, "version": own, "goversion": toolchain}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quotabudget_build_info",
		Help: "Which version of which program this is; always 1.", ConstLabels: labels,
	}, func() float64 { return 1 })
}
