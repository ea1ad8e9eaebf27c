package serve

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"quotabudget/internal/limit"
)

// limits reads what a guard has decided at each scrape.
type limits struct{ *limit.Stats }

// Describe implements prometheus.Collector.
func (l limits) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (l limits) Collect(to chan<- prometheus.Metric) {
	decisions := prometheus.NewDesc("limit_decisions_total", "Requests by limit and outcome: "+
		"allowed, denied, or observed (would have been denied).", []string{"limit", "outcome"}, nil)
	nearMisses := prometheus.NewDesc("limit_near_misses_total",
		"Allowed requests that left less than a tenth of the limit.", []string{"limit"}, nil)
	undecided := prometheus.NewDesc("limit_undecided_total",
		"Requests that could not be decided: the store of the limits was unreachable.", nil, nil)
	count := func(desc *prometheus.Desc, n int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
	}
	for _, c := range l.Counts() {
		count(decisions, c.Allowed, c.Policy, "allowed")
		count(decisions, c.Denied, c.Policy, "denied")
		count(decisions, c.Observed, c.Policy, "observed")
		count(nearMisses, c.NearMiss, c.Policy)
	}
	count(undecided, l.Undecided())
}

// measured counts requests by route and code, and serves the counts at /metrics.
func (s *Server) measured(mux *http.ServeMux, route func(*http.Request) string,
	next http.Handler) http.Handler {
	requests := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "serve_request_duration_seconds", Help: "How long an answer took, by route and code.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
	}, []string{"route", "code"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(requests)
	s.Metrics = registry
	if s.Guard != nil && s.Guard.Stats != nil {
		registry.MustRegister(limits{s.Guard.Stats})
	}
	scrape := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4,
		EnableOpenMetrics: true})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		keepPrivate(w.Header())
		if !s.mayReadPrivate(r.Header.Get("Authorization")) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, s.tokenRefusal(r.Header.Get("Authorization")),
				http.StatusUnauthorized)
			return
		}
		scrape.ServeHTTP(w, r)
	})
	timed := promhttp.InstrumentHandlerDuration(requests, next, promhttp.WithLabelFromCtx("route",
		func(ctx context.Context) string { return ctx.Value(routeKey{}).(string) }))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Pattern = route(r)
		timed.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), routeKey{}, r.Pattern)))
	})
}

// routeKey is the key of a request's route in its context.
type routeKey struct{}
