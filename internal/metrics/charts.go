package metrics

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/catalog"
)

// Charts asks the catalogue how old the regions' charts are whenever the metrics are read. Where it
// does not answer in time, ingest_catalog_up is 0. NewCharts makes it.
type Charts struct {
	of      func() (*catalog.Catalog, []string)
	lasting bool
	catalog source

	up, success, age, unavailable *prometheus.Desc
}

// NewCharts is for the regions that of returns at the time; a nil catalogue is none yet.
func NewCharts(of func() (*catalog.Catalog, []string), log *slog.Logger) *Charts {
	return &Charts{
		of: of, catalog: source{name: "catalogue", log: log},
		up: desc("ingest_catalog_up", "Whether the catalogue answered when the metrics were read."),
		success: desc("ingest_last_success_timestamp_seconds",
			"When the region's last chart was complete; 0 for a region that has none.", "region"),
		age: desc("ingest_chart_age_seconds",
			"Time since the region's last chart was complete; +Inf for a region that has none.",
			"region"),
		unavailable: desc("ingest_region_unavailable",
			"Whether the upstream's last answer was that it has no chart for the region.",
			"region"),
	}
}

// Lasting is the same without ages, for metrics that are read again and again after they were
// written.
func (c *Charts) Lasting() *Charts {
	c.lasting = true
	return c
}

// Describe implements prometheus.Collector.
func (c *Charts) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.up, c.success, c.age, c.unavailable} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Charts) Collect(out chan<- prometheus.Metric) {
	kept, regions := c.of()
	if kept == nil {
		return
	}
	var states []catalog.RegionState
	err := c.catalog.ask(func(ctx context.Context) (err error) {
		states, err = kept.Staleness(ctx, regions)
		return err
	})
	out <- gauge(c.up, truth(err == nil))
	for _, state := range states {
		age := math.Inf(1)
		if !state.CompletedAt.IsZero() {
			age = time.Since(state.CompletedAt).Seconds()
		}
		out <- gauge(c.success, timestamp(state.CompletedAt), state.Region)
		out <- gauge(c.unavailable, truth(!state.UnavailableAt.IsZero()), state.Region)
		if !c.lasting {
			out <- gauge(c.age, age, state.Region)
		}
	}
}
