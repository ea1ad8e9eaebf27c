package proxy

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"quotabudget/internal/costs"
	"quotabudget/internal/meter"
	"quotabudget/internal/words"
)

// Upstream is an upstream that the proxy serves. Its Transport adds the credential.
type Upstream struct {
	Name      string // its requests come to /NAME/…, or with one of its hosts in Host
	Transport *meter.Transport
	Endpoint  *url.URL

	form      sync.Once
	ownPrefix bool
}

func (u *Upstream) table() *costs.Table { return u.Transport.Table }

// named reports whether the upstream's own paths begin with /NAME/. They are not changed.
func (u *Upstream) named() bool {
	own := func(m costs.Method) bool { return strings.HasPrefix(m.Path, "/"+u.Name+"/") }
	u.form.Do(func() { u.ownPrefix = slices.ContainsFunc(u.table().Methods(), own) })
	return u.ownPrefix
}

// hosted returns the upstream with that host, or nil. The default upstream is not addressed by
// host.
func (p *Proxy) hosted(host string) *Upstream {
	name := plainHost(host)
	if bare, _, err := net.SplitHostPort(name); err == nil {
		name = bare
	}
	others := p.Upstreams
	if !p.NamedOnly {
		others = others[1:]
	}
	for _, u := range others {
		if slices.Contains(u.table().Hosts, name) {
			return u
		}
	}
	return nil
}

// route finds the upstream of a request: by its host, by the first segment of its path, which it
// removes, or else the default, if there is one.
func (x *exchange) route() error {
	p := x.proxy
	if !p.NamedOnly {
		x.up = p.Upstreams[0]
	}
	if u := p.hosted(x.r.Host); u != nil && !slices.Contains(ownHosts(x.r), plainHost(x.r.Host)) {
		x.up = u
	} else {
		for _, u := range p.Upstreams {
			if strings.HasPrefix(x.r.URL.EscapedPath(), "/"+u.Name+"/") {
				x.enter(u)
				break
			}
		}
	}
	if x.up == nil {
		return x.unnamed()
	}
	at := x.up.table().Credential
	for _, name := range append([]string{at.Header}, at.Headers...) {
		if name != "" && len(x.r.Header.Values(name)) > 1 {
			return ambiguous("send one %s header at most", http.CanonicalHeaderKey(name))
		}
	}
	return nil
}

// unnamed refuses a path that names no upstream, because a request with a misspelled name would go
// to another upstream and be billed there.
func (x *exchange) unnamed() error {
	first, _, _ := strings.Cut(strings.TrimPrefix(x.r.URL.EscapedPath(), "/"), "/")
	if slices.Contains(x.proxy.Unserved, first) {
		return notServed(first)
	}
	var names []string
	for _, u := range x.proxy.Upstreams {
		names = append(names, u.Name)
	}
	what := fmt.Sprintf("no upstream %q is served here%s", words.Clip(first),
		words.DidYouMean(first, names))
	if first == "" {
		what = "the path names no upstream"
	}
	return refusef(http.StatusNotFound, "upstreamUnknown", "upstream is not known",
		"%s: paths begin with /%s/", what, strings.Join(names, "/, /"))
}

func notServed(name string) error {
	return refusef(http.StatusNotFound, "upstreamNotServed", "upstream is not served",
		"the proxy has no key for %[1]s: give quota.yaml a credential with upstream: %[1]s and "+
			"an api_key, and restart it", name)
}

// enter chooses the upstream, and removes its name from the path.
func (x *exchange) enter(u *Upstream) {
	x.up = u
	if u.named() {
		return
	}
	x.prefix = "/" + u.Name
	x.takeOff(x.prefix)
}

// takeOff removes a prefix from the path.
func (x *exchange) takeOff(prefix string) {
	x.r = x.r.WithContext(x.r.Context())
	to := *x.r.URL
	to.Path = strings.TrimPrefix(to.Path, prefix)
	to.RawPath = strings.TrimPrefix(to.RawPath, prefix)
	x.r.URL = &to
}

// secretHeaders returns the headers in which this or a similar upstream takes a credential.
func (u *Upstream) secretHeaders() []string {
	at := u.table().Credential
	if at.Header == "" {
		return at.Headers
	}
	return append([]string{at.Header}, at.Headers...)
}

// takes reports whether the header contains the upstream's credential, which replaces a caller's.
func (u *Upstream) takes(header string) bool {
	same := func(name string) bool { return strings.EqualFold(name, header) }
	return slices.ContainsFunc(u.secretHeaders(), same)
}

// keyParams returns the parameters for a program's own key, which is dropped.
func (u *Upstream) keyParams() []string {
	return slices.DeleteFunc(u.secretParams(), isToken)
}

func (u *Upstream) tokenParams() []string {
	return slices.DeleteFunc(u.secretParams(), func(name string) bool { return !isToken(name) })
}

func (u *Upstream) secretParams() []string {
	at := u.table().Credential
	if at.Query == "" || slices.Contains(at.Params, at.Query) {
		return slices.Clone(at.Params)
	}
	return append(slices.Clone(at.Params), at.Query)
}

func isToken(name string) bool { return strings.Contains(name, "token") }
