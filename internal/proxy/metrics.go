package proxy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics is what a proxy counts, in a registry of its own. NewMetrics makes it; nil counts
// nothing.
type Metrics struct {
	Registry *prometheus.Registry

	requests *prometheus.CounterVec
	units    *prometheus.CounterVec
	inFlight prometheus.Gauge
	answers  *prometheus.CounterVec
	waited   *prometheus.HistogramVec
}

// NewMetrics makes an empty set of metrics.
func NewMetrics() *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proxy_requests_total", Help: "Requests by priced method and by what became of " +
				"them."}, []string{"method", "outcome"}),
		units: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proxy_units_total", Help: "Units that the requests were charged."},
			[]string{"bucket", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "proxy_requests_in_flight", Help: "Requests that are being answered."}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proxy_upstream_responses_total",
			Help: "Answers of the upstream by their status; none is one that did not come."},
			[]string{"code"}),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "proxy_upstream_duration_seconds",
			Help:    "How long the upstream took to begin its answer, the charge included.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 10)}, []string{"method"}),
	}
	process := collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})
	m.Registry.MustRegister(m.requests, m.units, m.inFlight, m.answers, m.waited,
		collectors.NewGoCollector(), process)
	return m
}

func (m *Metrics) begin() {
	if m != nil {
		m.inFlight.Inc()
	}
}

func (m *Metrics) end(x *exchange) {
	if m == nil {
		return
	}
	m.inFlight.Dec()
	m.requests.WithLabelValues(x.method.ID, x.outcome).Inc()
	for bucket, units := range x.charged() {
		m.units.WithLabelValues(bucket, x.method.ID).Add(float64(units))
	}
}

// answered counts an answer of the upstream, nil for none, to a request that was sent.
func (m *Metrics) answered(x *exchange, resp *http.Response, took time.Duration) {
	if m == nil || resp == nil && len(x.charged()) == 0 {
		return
	}
	code := "none"
	if resp != nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	m.answers.WithLabelValues(code).Inc()
	m.waited.WithLabelValues(x.method.ID).Observe(took.Seconds())
}
