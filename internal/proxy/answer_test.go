package proxy

import (
	"context"
	"fmt"
	"net/http"
	"testing"

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
