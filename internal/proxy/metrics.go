package proxy

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quotabudget/internal/quota"
)

// Metrics are the metrics of a proxy, in their own registry. NewMetrics creates them.
type Metrics struct {
	Registry *prometheus.Registry

	requests *prometheus.CounterVec
	units    *prometheus.CounterVec
	observed *prometheus.CounterVec
	inFlight prometheus.Gauge
	answers  *prometheus.CounterVec
	waited   *prometheus.HistogramVec
	missed   *prometheus.CounterVec

	mu    sync.Mutex
	parts map[string]bool // parts of buckets with their own series
}

// maxParts is the maximum number of parts with their own series, because callers can invent names
// of models. Further parts of a bucket share one series, BUCKET/other.
const maxParts = 1000

// NewMetrics returns an empty set of metrics.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	auto := promauto.With(registry)
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := &Metrics{
		Registry: registry,
		parts:    make(map[string]bool),
		requests: counters("proxy_requests_total",
			"Requests by priced method and outcome.", "method", "outcome"),
		units: counters("proxy_units_total", "Units charged for requests.",
			"bucket", "method"),
		observed: counters("proxy_observed_total",
			"Requests beyond a limit that is only observed.", "limit"),
		missed: counters("proxy_answers_without_cost_total",
			"Responses without the usage of the call: the worst case is booked.", "method"),
		inFlight: auto.NewGauge(prometheus.GaugeOpts{
			Name: "proxy_requests_in_flight", Help: "Requests under way."}),
		answers: counters("proxy_upstream_responses_total",
			"Responses of the upstream by status; none if there was no response.", "code"),
		waited: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "proxy_upstream_duration_seconds",
			Help:    "How long the upstream took to begin its response, including the charge.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 10)}, []string{"method"}),
	}
	m.observed.WithLabelValues(quota.Suspended) // the limits are not known here
	return m
}

// Expect creates the series of a method whose responses report usage, because a rate misses the
// increase with which a series appears.
func (m *Metrics) Expect(method string) { m.missed.WithLabelValues(method) }

// Missed counts a response without the usage of the call.
func (m *Metrics) Missed(method string) { m.missed.WithLabelValues(method).Inc() }

func (m *Metrics) end(x *exchange) {
	m.inFlight.Dec()
	m.requests.WithLabelValues(x.method.ID, x.outcome).Inc()
	if d := x.tally.Last(); d.Observed {
		m.observed.WithLabelValues(d.LimitKind()).Inc()
	}
	if !x.tally.Held() {
		m.booked(x.method.ID, x.charged())
	}
}

// booked counts units charged for calls of the method.
func (m *Metrics) booked(method string, units map[string]int64) {
	for bucket, n := range units {
		if n > 0 {
			m.units.WithLabelValues(m.series(bucket), method).Add(float64(n))
		}
	}
}

// series returns the bucket, or BUCKET/other beyond maxParts.
func (m *Metrics) series(bucket string) string {
	whole := quota.WholeOf(bucket)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case whole == bucket || m.parts[bucket]:
	case len(m.parts) < maxParts:
		m.parts[bucket] = true
	default:
		return quota.SplitBucket(whole, "other")
	}
	return bucket
}

// countResponse counts the response, nil for none, to a request that was sent.
func (m *Metrics) countResponse(x *exchange, resp *http.Response, duration time.Duration) {
	if resp == nil && len(x.charged()) == 0 {
		return
	}
	code := "none"
	if resp != nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	m.answers.WithLabelValues(code).Inc()
	m.waited.WithLabelValues(x.method.ID).Observe(duration.Seconds())
}
