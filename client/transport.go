package client

import (
	"cmp"
	"context"
	"net/http"
	"time"
)

// Transport is an http.RoundTripper that holds what a request may take before it is sent, and
// settles what it used after the response has come. Its fields are set once before use.
type Transport struct {
	Client *Client
	Base   http.RoundTripper // sends the requests; nil for http.DefaultTransport
	// Most returns the most that a request can take. A request that takes nothing is sent as it is.
	Most func(*http.Request) Cost
	// Used returns what the call took, by bucket, from its response, whose body it may read and must
	// then replace; nil leaves the hold to lapse into a charge of the most.
	Used func(*http.Response) map[string]int64
	TTL  time.Duration // of the holds; 0 for 15 minutes
}

// RoundTrip implements http.RoundTripper. A denial is a *DeniedError, and nothing is sent.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	cost := t.Most(r)
	if cost.Method == "" && cost.Units == 0 && len(cost.Costs) == 0 {
		return base.RoundTrip(r)
	}
	held, err := t.Client.Hold(r.Context(), cost, cmp.Or(t.TTL, 15*time.Minute), "")
	if err != nil {
		return nil, err
	}
	response, err := base.RoundTrip(r)
	if err != nil { // it may have been billed: the hold lapses into a charge
		return nil, err
	}
	if used := t.Used(response); used != nil {
		// booked even if the caller gives up; what fails stays in the journal
		t.Client.Settle(context.WithoutCancel(r.Context()), held.ID, used)
	}
	return response, nil
}
