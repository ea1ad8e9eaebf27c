package daemon

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/catalog"
)

// ChartMetrics reads the age of the regions' charts from the catalogue at each scrape. If it does
// not answer in time, ingest_catalog_up is 0. NewChartMetrics makes it.
type ChartMetrics struct {
	of      func() (*catalog.Catalog, []string)
	lasting bool
	*source

	success, age, unavailable *prometheus.Desc
}

// NewChartMetrics is for the regions that of returns at the time; a nil catalogue is none yet.
func NewChartMetrics(of func() (*catalog.Catalog, []string), log *slog.Logger) *ChartMetrics {
	s := newSource("catalogue", "ingest_catalog_up", log)
	return &ChartMetrics{
		of: of, source: s,
		success: s.desc("ingest_last_success_timestamp_seconds",
			"When the region's last chart was complete; 0 for a region that has none.", "region"),
		age: s.desc("ingest_chart_age_seconds",
			"Time since the region's last chart was complete; +Inf for a region that has none.",
			"region"),
		unavailable: s.desc("ingest_region_unavailable",
			"Whether the upstream's last answer was that it has no chart for the region.",
			"region"),
	}
}

// Lasting leaves out the ages, for metrics that are written once and read later.
func (c *ChartMetrics) Lasting() *ChartMetrics {
	c.lasting = true
	return c
}

// Collect implements prometheus.Collector.
func (c *ChartMetrics) Collect(out chan<- prometheus.Metric) {
	kept, regions := c.of()
	if kept == nil {
		return
	}
	var states []catalog.RegionState
	c.read(out, func(ctx context.Context) (err error) {
		states, err = kept.Staleness(ctx, regions)
		return err
	})
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
