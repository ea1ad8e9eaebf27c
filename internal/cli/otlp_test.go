package cli_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"quotabudget/internal/cli"
)

// TestExportMetrics: a collector that decodes by the schema of OTLP reads every kind of metric.
func TestExportMetrics(t *testing.T) {
	t.Parallel()
	got := make(chan *metricspb.MetricsData, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		data := new(metricspb.MetricsData)
		if err == nil {
			err = protojson.Unmarshal(body, data)
		}
		if err != nil || r.URL.Path != "/v1/metrics" || r.Header.Get("X-Token") != "a b" {
			t.Errorf("%s %v: %v\n%s", r.URL, r.Header, err, body)
		}
		got <- data
	}))
	t.Cleanup(collector.Close)
	c := &cli.Common{Stderr: t.Output(), Getenv: func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL + "/",
			"OTEL_EXPORTER_OTLP_HEADERS": "x-other=1, x-token=a%20b", "OTEL_SERVICE_NAME": "mine"}[name]
	}}
	registry := prometheus.NewRegistry()
	count := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "units_total"}, []string{"bucket"})
	level := prometheus.NewGauge(prometheus.GaugeOpts{Name: "dry_at"})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "took", Buckets: []float64{1, 2}})
	registry.MustRegister(count, level, took)
	count.WithLabelValues("default").Add(7)
	level.Set(math.Inf(1))
	for _, v := range []float64{0.5, 1.5, 1.7, 9} {
		took.Observe(v)
	}
	c.ExportOnce(t.Context(), "quota", registry)
	rm := (<-got).ResourceMetrics[0]
	if name := rm.Resource.Attributes[0].Value.GetStringValue(); name != "mine" {
		t.Errorf("service.name is %s", name)
	}
	for _, m := range rm.ScopeMetrics[0].Metrics {
		switch m.Name {
		case "units_total":
			s := m.GetSum()
			p := s.GetDataPoints()[0]
			if !s.IsMonotonic || s.AggregationTemporality != 2 || p.GetAsDouble() != 7 ||
				p.Attributes[0].Value.GetStringValue() != "default" || p.StartTimeUnixNano == 0 {
				t.Errorf("%v", m)
			}
		case "dry_at":
			if !math.IsInf(m.GetGauge().GetDataPoints()[0].GetAsDouble(), 1) {
				t.Errorf("%v", m)
			}
		case "took":
			p := m.GetHistogram().GetDataPoints()[0]
			if p.Count != 4 || p.GetSum() != 12.7 || len(p.BucketCounts) != 3 ||
				p.BucketCounts[1] != 2 || p.BucketCounts[2] != 1 || p.ExplicitBounds[1] != 2 {
				t.Errorf("%v", m)
			}
		default:
			t.Errorf("unknown %v", m)
		}
	}
	collector.Close()
	c.ExportOnce(t.Context(), "quota", registry) // only warns
}
