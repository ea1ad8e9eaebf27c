package client

import (
	"cmp"
	"context"
	"net/http"
	"time"
)

// Transport is an http.RoundTripper that holds a request's maximum cost before sending it, and
// settles its usage after the response. Its fields are set once before use.
type Transport struct {
	Client *Client
	Base   http.RoundTripper // sends the requests; nil for http.DefaultTransport
	// Most returns the maximum cost of a request. A request that costs nothing is sent as it is.
	Most func(*http.Request) Cost
	// Used returns the usage of the call, by bucket, from its response. It may read the body, and
	// must then replace it. If it returns nil, the hold lapses into a charge of the maximum.
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
		// booked even if the caller gives up; a failed settlement stays in the journal
		t.Client.Settle(context.WithoutCancel(r.Context()), held.ID, used)
	}
	return response, nil
}
