// Package proxy meters programs that know nothing of quotas: they send their requests here instead of to the upstream.
package proxy

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	"quotabudget/internal/meter"
)

// Proxy is an http.Handler that forwards requests to the upstream through a meter.Transport, which charges each of them and
// adds the API key. Its fields are set once before use.
//
// It refuses what a web page in somebody's browser could send without being asked to, and what the upstream might read as
// another method than the one that is charged. What it refuses costs nothing.
type Proxy struct {
	Transport *meter.Transport
	Upstream  *url.URL
	Hosts     []string // names by which callers may address it, besides the address that it listens on
	Origins   []string // web pages that may use it, such as https://dashboard.example
	Log       *slog.Logger
}

// ServeHTTP checks the request, step by step, and forwards it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{proxy: p, w: w}
	r = r.WithContext(meter.WithTally(r.Context(), &x.tally))
	if err := p.checkHost(r); err != nil {
		x.refuse(r, err)
		return
	}
	if err := p.checkOrigin(r); err != nil {
		x.refuse(r, err)
		return
	}
	if p.share(w, r) {
		return
	}
	x.forward(r)
}

// exchange is one request and its answer.
type exchange struct {
	proxy *Proxy
	w     http.ResponseWriter
	tally meter.Tally // what the request was charged
}

// forward sends the request to the upstream and its answer to the caller.
func (x *exchange) forward(r *http.Request) {
	p := x.proxy
	reverse := &httputil.ReverseProxy{
		Transport: p.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(p.Upstream)
			r.Out.URL.RawQuery = withoutKeys(r.In.URL.RawQuery)
			dropHeaders(r.Out.Header)
		},
		ModifyResponse: func(resp *http.Response) error {
			keepPrivate(resp.Header)
			p.keepUpload(r, resp)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) { x.refuse(r, err) },
		ErrorLog:     slog.NewLogLogger(p.Log.Handler(), slog.LevelWarn),
	}
	reverse.ServeHTTP(x.w, r)
}

// withoutKeys is a query without the parameters in which a program sends an API key of its own. All others stay as they are.
func withoutKeys(raw string) string {
	pairs := slices.DeleteFunc(strings.Split(raw, "&"), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		return err != nil || slices.Contains(meter.SecretParams(), plain)
	})
	return strings.Join(pairs, "&")
}

// dropHeaders takes out of a request what is meant for us, or tells the upstream about the caller's browser.
func dropHeaders(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Sec-") || strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
	for _, name := range []string{"Origin", "Referer", "Cookie", "X-Goog-Api-Key", "Authorization"} {
		h.Del(name)
	}
}

// keepPrivate takes out of an answer what the upstream would allow to web pages: who may use the proxy is said here.
func keepPrivate(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
	h.Del("Set-Cookie")
}

// path is the path of a request as it may be shown.
func path(r *http.Request) string { return cmp.Or(r.URL.EscapedPath(), r.URL.Opaque) }
