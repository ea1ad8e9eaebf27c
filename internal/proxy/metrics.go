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

// Metrics is what a proxy counts, in a registry of its own. NewMetrics makes it.
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
	parts map[string]bool // of buckets, that have series
}

// maxParts is how many parts of buckets have series of their own: callers can make parts up, as
// names of models. Of what is beyond them there is one for each bucket, BUCKET/other.
const maxParts = 1000

// NewMetrics makes an empty set of metrics.
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
			"Requests by priced method and by what became of them.", "method", "outcome"),
		units: counters("proxy_units_total", "Units that the requests were charged.",
			"bucket", "method"),
		observed: counters("proxy_observed_total",
			"Requests that a limit would have denied, were it not only observed.", "limit"),
		missed: counters("proxy_answers_without_cost_total",
			"Answers that do not say what the call took: the worst case is booked.", "method"),
		inFlight: auto.NewGauge(prometheus.GaugeOpts{
			Name: "proxy_requests_in_flight", Help: "Requests that are being answered."}),
		answers: counters("proxy_upstream_responses_total",
			"Answers of the upstream by their status; none is one that did not come.", "code"),
		waited: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "proxy_upstream_duration_seconds",
			Help:    "How long the upstream took to begin its answer, the charge included.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 10)}, []string{"method"}),
	}
	m.observed.WithLabelValues(quota.Suspended) // the limits are not known here
	return m
}

// Expect makes the series of a method whose answers say what a call took: a rate does not see the
// first increase of one that appears with it.
func (m *Metrics) Expect(method string) { m.missed.WithLabelValues(method) }

// Missed counts an answer that does not say what the call took.
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

// booked counts what calls of the method were charged.
func (m *Metrics) booked(method string, units map[string]int64) {
	for bucket, n := range units {
		if n > 0 {
			m.units.WithLabelValues(m.series(bucket), method).Add(float64(n))
		}
	}
}

// series is the bucket, or what stands for the parts that are too many.
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

// answered counts an answer of the upstream, nil for none, to a request that was sent.
func (m *Metrics) answered(x *exchange, resp *http.Response, took time.Duration) {
	if resp == nil && len(x.charged()) == 0 {
		return
	}
	code := "none"
	if resp != nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	m.answers.WithLabelValues(code).Inc()
	m.waited.WithLabelValues(x.method.ID).Observe(took.Seconds())
}
