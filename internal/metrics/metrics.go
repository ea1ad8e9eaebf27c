// Package metrics tells Prometheus how budgets, charts and the upstream stand.
package metrics

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/version"
)

// askTime is how long a ledger or a catalogue may take to answer a scrape. Prometheus gives up
// after 10 seconds by default, and loses every other metric with it.
const askTime = 2 * time.Second

// source is what a collector asks whenever the metrics are read.
type source struct {
	name string
	log  *slog.Logger
	away atomic.Bool // it did not answer the last time
}

// ask asks for a short while, and logs when the source goes away and when it comes back.
func (s *source) ask(question func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	err := question(ctx)
	switch was := s.away.Swap(err != nil); {
	case err != nil && !was:
		s.log.Warn("metrics are incomplete: this source cannot be read", "source", s.name, "error", err)
	case err == nil && was:
		s.log.Info("metrics are complete again", "source", s.name)
	}
	return err
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
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

// timestamp is a moment as Prometheus writes it, 0 for none.
func timestamp(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMicro()) / 1e6
}

// BuildInfo says which version of a program runs.
func BuildInfo(program string) prometheus.Collector {
	own, toolchain := version.Of()
	labels := prometheus.Labels{"program": program, "version": own, "goversion": toolchain}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quotabudget_build_info",
		Help: "Which version of which program this is; always 1.", ConstLabels: labels,
	}, func() float64 { return 1 })
}
