// Package proxy meters programs that know nothing of quotas: they send their requests here instead
// of to the upstream.
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

// Proxy is an http.Handler that forwards requests to upstreams through a meter.Transport of each,
// which charges them and adds the credential. Its fields are set once before use.
//
// It refuses what a web page in somebody's browser could send without being asked to, and what the
// upstream might read as another call than the one that is charged. What it refuses costs nothing.
type Proxy struct {
	Upstreams []*Upstream // at least one; the first also without its name, unless NamedOnly
	NamedOnly bool
	Unserved  []string // names of further ones, for which there is no key
	// names by which callers may address it, besides the address that it listens on
	Hosts   []string
	Origins []string      // web pages that may use it, such as https://dashboard.example
	Callers *limit.Tokens // callers with tokens; nil if no token is required
	Limits  Limits
	Metrics *Metrics
	Log     *slog.Logger

	serving  atomic.Int64 // requests, from their first to their last step
	word     string       // that the path of each request begins with; "" for none
	underWay atomic.Int64 // those that have a slot
	kept     atomic.Int64 // bytes of bodies in memory, beyond what each may have anyway
}

// ServeHTTP checks the request, step by step, and forwards it. Whatever comes of it is one line of
// the log.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := p.begin(w, r)
	defer x.end()
	for _, step := range []func() error{
		x.checkWord, x.checkHost, x.checkOrigin, x.share, // the caller
		x.checkForm, x.route, x.identify, x.name, x.checkAuthorization, // the request
		x.receive, x.takeSlot, // does the body come, and is there room: in this order
		x.forward,
	} {
		if err := step(); err != nil {
			x.refuse(err)
			return
		}
		if x.answered {
			return
		}
	}
}

// forward sends the request to the upstream, through the transport that charges it, and the answer
// to the caller.
func (x *exchange) forward() error {
	p := x.proxy
	ctx, stop := x.watch(x.r.Context())
	defer stop()
	labels := x.caller.LabelsOf().WithTrace(x.r.Header.Get("Traceparent"))
	call := quota.Call{Manual: x.caller.Manual, Labels: labels, Allow: x.caller.Allow}
	id := x.method.ID
	x.tally.Booked = func(units map[string]int64) { p.Metrics.booked(id, units) }
	ctx = meter.WithCall(meter.WithTally(ctx, &x.tally), call)
	// which a ReverseProxy would send on
	for _, name := range []string{"Connection", "Upgrade", "Http2-Settings"} {
		x.r.Header.Del(name)
	}
	var failed error
	reverse := &httputil.ReverseProxy{
		// streams are passed on as they come: what has no length is flushed at once
		Transport: timed{x.up.Transport, x},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(x.up.Endpoint)
			r.Out.URL.RawQuery = x.up.withoutKeys(r.In.URL.RawQuery)
			x.dropHeaders(r.Out.Header)
		},
		ModifyResponse: func(resp *http.Response) error {
			keepPrivate(resp.Header)
			limit.SetQuotaHeader(resp.Header, x.up.Transport.Budget, x.tally.Last(),
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
	// the caller's doing, whatever it looked like to the transport
	if err := x.body.failure(); err != nil {
		return err
	}
	if quiet, ok := errors.AsType[*refusal](context.Cause(ctx)); ok && failed != nil {
		return quiet
	}
	return failed
}
