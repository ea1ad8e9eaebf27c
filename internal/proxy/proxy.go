// Package proxy meters unmodified programs, which send it their requests in place of the upstream.
package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync/atomic"

	"quotabudget/internal/limit"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
)

// Proxy is an http.Handler that forwards requests to upstreams through a meter.Transport for each,
// which charges them and adds the credential. Its fields are set once before use.
//
// It refuses requests that a web page in a browser could send on its own, and requests that the
// upstream might read as a different call from the one charged. A refused request costs nothing.
type Proxy struct {
	Upstreams []*Upstream // at least one; the first also without its name, unless NamedOnly
	NamedOnly bool
	Unserved  []string // names of upstreams without a key
	// Hosts are additional names by which callers may address the proxy.
	Hosts   []string
	Origins []string      // web pages that may use it, such as https://dashboard.example
	Callers *limit.Tokens // callers with tokens; nil if no token is required
	Limits  Limits
	Metrics *Metrics
	Log     *slog.Logger

	serving   atomic.Int64 // requests between their first and last step
	word      string       // first segment of every request's path; "" for none
	underWay  atomic.Int64 // requests with a slot
	bodyBytes atomic.Int64 // bytes of bodies in memory, beyond each request's allowance
}

// ServeHTTP checks the request, step by step, and forwards it. It logs one line per request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := p.begin(w, r)
	defer x.end()
	for _, step := range []func() error{
		x.checkWord, x.checkHost, x.checkOrigin, x.share, // the caller
		x.checkForm, x.route, x.identify, x.name, x.checkAuthorization, // the request
		x.receive, x.takeSlot, // the body arrives before it takes a slot
		x.forward,
	} {
		if err := step(); err != nil {
			x.refuse(err)
			return
		}
		if x.outcome == outcomePreflight {
			return
		}
	}
}

// forward sends the request to the upstream, through the transport that charges it, and the
// response to the caller.
func (x *exchange) forward() error {
	p := x.proxy
	ctx, stop := x.watch(x.r.Context())
	defer stop()
	labels := x.caller.LabelsOf().WithTrace(x.r.Header.Get("Traceparent"))
	call := quota.Call{Manual: x.caller.Manual, Labels: labels, Allow: x.caller.Allow}
	id := x.method.ID
	x.tally.Booked = func(units map[string]int64) { p.Metrics.booked(id, units) }
	ctx = meter.WithCall(meter.WithTally(ctx, &x.tally), call)
	// a ReverseProxy would forward these
	for _, name := range []string{"Connection", "Upgrade", "Http2-Settings"} {
		x.r.Header.Del(name)
	}
	var failed error
	reverse := &httputil.ReverseProxy{
		// ReverseProxy flushes a response without a length at once, so streams are not delayed
		Transport: x,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(x.up.Endpoint)
			r.Out.URL.RawQuery = x.up.withoutKeys(r.In.URL.RawQuery)
			x.dropHeaders(r.Out.Header)
		},
		ModifyResponse: func(resp *http.Response) error {
			// Drop the upstream's permissions for web pages, because the proxy has its own list,
			// and headers that browsers store for the upstream's address.
			drop(resp.Header, "Access-Control-", "Set-Cookie", "Alt-Svc",
				"Strict-Transport-Security", "Clear-Site-Data")
			limit.SetQuotaHeader(resp.Header, x.up.Budget, x.tally.Last(),
				x.caller.Manual, "")
			if p.Callers != nil {
				keepUnshared(resp.Header)
			}
			x.keepUpload(resp)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
		ErrorLog:     slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug),
	}
	reverse.ServeHTTP(x.w, x.r.WithContext(ctx))
	if x.body != nil {
		// the caller's fault, though the transport reports another error
		if f := x.body.failed.Load(); f != nil {
			return f
		}
	}
	if quiet, ok := errors.AsType[*refusal](context.Cause(ctx)); ok && failed != nil {
		return quiet
	}
	return failed
}
