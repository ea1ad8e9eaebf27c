package client

import (
	"cmp"
	"context"
	"errors"
	"net"
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

// RoundTrip implements http.RoundTripper. A denial is a *DeniedError, and nothing is sent. A hold
// is released if no connection could be made, and lapses into a charge after any other error,
// because the call may have been billed.
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
		if r.Body != nil {
			r.Body.Close() // as every RoundTripper must
		}
		return nil, err
	}
	ctx := context.WithoutCancel(r.Context()) // the call is booked even if the caller gives up
	response, err := base.RoundTrip(r)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			t.Client.Release(ctx, held.ID)
		}
		return nil, err
	}
	if used := t.Used(response); used != nil {
		t.Client.Settle(ctx, held.ID, used) // if it fails, it stays in the journal
	}
	return response, nil
}
