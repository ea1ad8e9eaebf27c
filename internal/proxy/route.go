package proxy

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"quotabudget/internal/costs"
	"quotabudget/internal/meter"
	"quotabudget/internal/words"
)

// Upstream is an upstream that the proxy serves. Its Transport adds the credential.
type Upstream struct {
	*meter.Transport
	Name string // callers use /NAME/… or one of its hosts in Host
}

// hosted returns the upstream with that host, or nil. It ignores the default upstream, which needs
// no host.
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
		if slices.Contains(u.Table.Hosts, name) {
			return u
		}
	}
	return nil
}

// route finds the upstream of a request by its host or by the first segment of its path, which it
// removes; otherwise it is the default, if there is one.
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
	if x.up == nil { // otherwise a misspelled name would be billed by another upstream
		if first := x.firstPart(); slices.Contains(p.Unserved, first) {
			return notServed(first)
		}
		return refusef(http.StatusNotFound, "upstreamUnknown", "upstream is not known", "%s",
			x.noUpstream())
	}
	for _, name := range x.up.Table.Credential.AllHeaders() {
		if len(x.r.Header.Values(name)) > 1 {
			return ambiguous("send one %s header at most", http.CanonicalHeaderKey(name))
		}
	}
	return nil
}

func (x *exchange) firstPart() string {
	first, _, _ := strings.Cut(strings.TrimPrefix(x.r.URL.EscapedPath(), "/"), "/")
	return first
}

// misnamed reports whether the path may be meant for another upstream, because no method of the
// default upstream begins like it.
func (x *exchange) misnamed() bool {
	begins := func(m costs.Method) bool {
		part, _, _ := strings.Cut(strings.TrimPrefix(m.Path, "/"), "/")
		return part == x.firstPart() || strings.HasPrefix(part, "{")
	}
	return x.up != nil && x.up == x.proxy.Upstreams[0] && x.prefix == "" &&
		!slices.ContainsFunc(x.up.Table.Methods(), begins)
}

// noUpstream returns a message that the path names no upstream, with the possible beginnings.
func (x *exchange) noUpstream() string {
	first := x.firstPart()
	var names []string
	for _, u := range x.proxy.Upstreams {
		names = append(names, u.Name)
	}
	what := fmt.Sprintf("no upstream %q is served here%s", words.Clip(first),
		words.DidYouMean(first, names))
	if first == "" {
		what = "the path names no upstream"
	}
	return fmt.Sprintf("%s: paths begin with /%s/", what, strings.Join(names, "/, /"))
}

func notServed(name string) error {
	return refusef(http.StatusNotFound, "upstreamNotServed", "upstream is not served",
		"the proxy has no key for %[1]s: give quota.yaml a credential with upstream: %[1]s and "+
			"an api_key, and restart it", name)
}

// enter chooses the upstream. It removes the upstream's name from the path, unless the upstream's
// own paths begin with it.
func (x *exchange) enter(u *Upstream) {
	x.up = u
	own := func(m costs.Method) bool { return strings.HasPrefix(m.Path, "/"+u.Name+"/") }
	if slices.ContainsFunc(u.Table.Methods(), own) {
		return
	}
	x.prefix = "/" + u.Name
	x.takeOff(x.prefix)
}

func (x *exchange) takeOff(prefix string) {
	x.r = x.r.WithContext(x.r.Context())
	to := *x.r.URL
	to.Path = strings.TrimPrefix(to.Path, prefix)
	to.RawPath = strings.TrimPrefix(to.RawPath, prefix)
	x.r.URL = &to
}

// keyParams returns the parameters for a program's own key, which the proxy drops.
func (u *Upstream) keyParams() []string {
	return slices.DeleteFunc(u.Table.Credential.AllParams(), isToken)
}

func isToken(name string) bool { return strings.Contains(name, "token") }
