package daemon

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// noAnswer is the code of a request that got no answer.
const noAnswer = "none"

// newUpstreamTime returns a histogram of the upstream's response times, by method and code. The
// series of a chart's pages exist before the first request, so that a rate includes it.
func newUpstreamTime() *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "upstream_request_duration_seconds",
		Help: "How long the upstream took to begin its answer, by priced method and HTTP status; " +
			`code="` + noAnswer + `" for none.`,
		Buckets: []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"method", "code"})
	for _, code := range []string{"200", "400", "403", "429", "500", "503", noAnswer} {
		h.WithLabelValues(chartMethod, code)
	}
	return h
}

// Measure returns a RoundTripper that measures every request to the upstream. name returns a
// request's priced method.
func (m *Metrics) Measure(base http.RoundTripper,
	name func(*http.Request) (string, error)) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		began := time.Now()
		resp, err := base.RoundTrip(r)
		code, duration := noAnswer, time.Since(began)
		switch {
		case err != nil:
		case http.StatusText(resp.StatusCode) == "": // an unknown code must not create a new label
			code = "other"
		default:
			code = strconv.Itoa(resp.StatusCode)
		}
		method, unknown := name(r)
		if unknown != nil { // the gate sends no request without a price
			method = "other"
		}
		m.upstream.WithLabelValues(method, code).Observe(duration.Seconds())
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
