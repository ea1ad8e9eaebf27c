package daemon

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// UpstreamMetrics measures what the upstream answers, and how soon. NewUpstreamMetrics makes it.
type UpstreamMetrics struct{ *prometheus.HistogramVec }

// NoAnswer, as a code, is a request that was not answered.
const NoAnswer = "none"

// NewUpstreamMetrics is for methods that are known to be called: their series are there before the
// first request, so that a rate sees it.
func NewUpstreamMetrics(methods ...string) *UpstreamMetrics {
	u := &UpstreamMetrics{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "upstream_request_duration_seconds",
		Help: "How long the upstream took to begin its answer, by priced method and HTTP status; " +
			`code="` + NoAnswer + `" for none.`,
		Buckets: []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"method", "code"})}
	for _, method := range methods {
		for _, code := range []string{"200", "400", "403", "429", "500", "503", NoAnswer} {
			u.WithLabelValues(method, code)
		}
	}
	return u
}

// Namer names the priced method of a request.
type Namer func(*http.Request) (string, error)

// Measure returns base with every request measured.
func (u *UpstreamMetrics) Measure(base http.RoundTripper, name Namer) http.RoundTripper {
	return measured{u, base, name}
}

type measured struct {
	*UpstreamMetrics
	base http.RoundTripper
	name Namer
}

// RoundTrip implements http.RoundTripper.
func (m measured) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := time.Now()
	resp, err := m.base.RoundTrip(r)
	code, took := NoAnswer, time.Since(asked)
	if err == nil {
		code = codeOf(resp.StatusCode)
	}
	method, unknown := m.name(r)
	if unknown != nil { // the gate sends nothing that has no price
		method = "other"
	}
	m.WithLabelValues(method, code).Observe(took.Seconds())
	return resp, err
}

// codeOf is a status as a label: an upstream cannot make new ones.
func codeOf(status int) string {
	if http.StatusText(status) == "" {
		return "other"
	}
	return strconv.Itoa(status)
}
