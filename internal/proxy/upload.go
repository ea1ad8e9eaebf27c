package proxy

import (
	"net/http"
	"net/url"
)

// keepUpload makes clients continue an upload through the proxy: a Location on the upstream becomes
// one on the proxy.
func (p *Proxy) keepUpload(r *http.Request, resp *http.Response) {
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || to.Host != p.Upstream.Host {
		return
	}
	to.Scheme, to.Host = "http", r.Host
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		to.Scheme = "https"
	}
	resp.Header.Set("Location", to.String())
}
