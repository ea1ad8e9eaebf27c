package daemon

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/ingest"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/youtube"
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

// Observe counts and times an operation of the daemon's ledger.
func (m *Metrics) Observe(op ledger.Operation) {
	m.ledgerTime.WithLabelValues(op.Name).Observe(op.Took.Seconds())
	if fromLedger(op.Err) {
		m.ledgerFailures.WithLabelValues(op.Name).Inc()
	}
	d := op.Decision
	if op.Err != nil {
		return
	}
	switch {
	case op.Name == "cancel":
		addUnits(m.cancelled, op)
	case d.Replayed:
	case op.Name == "settle":
		addUnits(m.spent, op)
	case op.Name != "charge" && op.Name != "reserve":
	case !d.Allowed:
		m.denials.WithLabelValues(op.Credential, d.LimitKind()).Inc()
	case op.Name == "charge": // reserved units are counted when they are settled
		addUnits(m.spent, op)
		if d.Observed {
			m.observed.WithLabelValues(op.Credential, d.LimitKind()).Inc()
		}
	}
}

func addUnits(vec *prometheus.CounterVec, op ledger.Operation) {
	for bucket, units := range quota.UnlabelledUnits(op.Decision.Units) {
		vec.WithLabelValues(op.Credential, bucket, op.Labels[quota.LabelMethod],
			op.Labels[quota.LabelRegion]).Add(float64(units))
	}
}

// Kinds of failure that are not the upstream's.
const (
	ledgerFailure    = "ledger"    // the ledger could not be reached or used
	catalogueFailure = "catalogue" // the catalogue could not be read, or stored no pages
	ownFailure       = "internal"
)

// failureKind returns the reason for a failed run, one of failureKinds.
func failureKind(err error) string {
	if kind, upstream := youtube.KindOf(err); upstream {
		return kindWord(kind)
	}
	switch {
	case errors.Is(err, errDown):
		return kindWord(youtube.Transient)
	case fromLedger(err):
		return ledgerFailure
	case errors.Is(err, ingest.ErrCatalogue):
		return catalogueFailure
	}
	return ownFailure
}

// failureKinds returns all kinds. Exhaustion and a missing chart are no failures.
func failureKinds() []string {
	kinds := []string{ledgerFailure, catalogueFailure, ownFailure, panicked}
	for _, kind := range []youtube.Kind{youtube.Permanent, youtube.Transient, youtube.Throttled,
		youtube.BadCredential, youtube.BadRegion, youtube.BadPageToken} {
		kinds = append(kinds, kindWord(kind))
	}
	return kinds
}

func kindWord(kind youtube.Kind) string { return strings.ReplaceAll(string(kind), " ", "_") }

func (m *Metrics) countFailure(l *lane, err error) {
	m.failures.WithLabelValues(l.Region, failureKind(err)).Inc()
}
