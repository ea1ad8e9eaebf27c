package proxy

import (
	"net/http"
	"net/url"
)

// keepUpload makes the upload that r began go on through the proxy: an address of the upstream in
// Location becomes one of the proxy.
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
