package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// TestRefusalOf: the reason of a refusal is the cause of the error, even if its price could not be
// computed because the caller disconnected.
func TestRefusalOf(t *testing.T) {
	for _, c := range []struct {
		err             error
		status          int
		reason, outcome string
	}{
		{context.Canceled, statusGone, "callerGone", outcomeBroken},
		{&costs.PriceError{Method: "a.b", Err: fmt.Errorf("file f: %w", context.Canceled)},
			statusGone, "callerGone", outcomeBroken},
		{&costs.PriceError{Method: "a.b", Err: quota.ErrMalformed}, http.StatusBadRequest,
			"unpriceable", outcomeRefused},
		{&costs.PriceError{Method: "a.b", Err: fmt.Errorf("%w: locked", quota.ErrJournal)},
			http.StatusServiceUnavailable, "unpriceable", outcomeRefused},
		{quota.ErrUnpriced, http.StatusNotFound, "unpriced", outcomeRefused},
		{context.DeadlineExceeded, http.StatusGatewayTimeout, "upstreamTimeout", outcomeFailed},
	} {
		f := refusalOf(c.err)
		if f.Status != c.status || f.reason != c.reason || f.outcome() != c.outcome {
			t.Errorf("%v: %d %s, %s", c.err, f.Status, f.reason, f.outcome())
		}
	}
}

// connection is an http.ResponseWriter that records the deadline for the caller's next bytes.
type connection struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

// SetReadDeadline records the deadline.
func (c *connection) SetReadDeadline(at time.Time) error {
	c.deadline = at
	return nil
}

// TestLateRead: once the response has begun, reading the request's body does not give the caller
// more time to send the rest.
func TestLateRead(t *testing.T) {
	w := &connection{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("film"))
	x := (&Proxy{Metrics: NewMetrics(), Limits: DefaultLimits()}).begin(w, r)
	x.body = &body{ReadCloser: r.Body, x: x}
	io.ReadFull(x.body, make([]byte, 2))
	x.stopReading()
	want := w.deadline
	io.ReadFull(x.body, make([]byte, 1))
	if w.deadline != want || want.IsZero() {
		t.Errorf("the deadline moved by %s", w.deadline.Sub(want))
	}
}
