package proxy

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"quotabudget/internal/words"
)

// checkHost refuses a request whose Host is not the proxy's address or one of its names. A web page
// whose own host name resolves to this machine (DNS rebinding) sends that name.
func (x *exchange) checkHost() error {
	host := plainHost(x.r.Host)
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	named := func(h string) bool { return plainHost(h) == host || plainHost(h) == name }
	if slices.Contains(ownHosts(x.r), host) || slices.ContainsFunc(x.proxy.Hosts, named) ||
		x.proxy.hosted(host) != nil {
		return nil
	}
	return refusef(http.StatusForbidden, "hostNotAllowed", "host is not allowed",
		"the request is for host %q, which is not this proxy: use its own address, or start it "+
			"with --host NAME", words.Clip(x.r.Host))
}

// ownHosts returns the valid Host headers for the local address of a request's connection. For a
// loopback address they include localhost; for a unix socket, localhost is the only one.
func ownHosts(r *http.Request) []string {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	tcp, ok := local.(*net.TCPAddr)
	if !ok {
		return []string{"localhost"}
	}
	names := []string{tcp.IP.String()}
	if tcp.IP.IsLoopback() {
		names = append(names, "localhost", "127.0.0.1", "::1")
	}
	var hosts []string
	for _, name := range names {
		hosts = append(hosts, net.JoinHostPort(name, fmt.Sprint(tcp.Port)))
		if tcp.Port == 80 {
			hosts = append(hosts, strings.TrimSuffix(net.JoinHostPort(name, ""), ":"))
		}
	}
	return hosts
}

// plainHost normalizes a Host header for comparison: lower case, without the dot of the root.
func plainHost(host string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return strings.TrimSuffix(strings.ToLower(host), ".")
	}
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(name), "."), port)
}

// checkOrigin refuses a request that a web page sent, unless the page is one of p.Origins.
func (x *exchange) checkOrigin() error {
	const reason, title = "originNotAllowed", "origin is not allowed"
	origins := x.r.Header.Values("Origin")
	foreign := func(site string) bool { return site != "none" && site != "same-origin" }
	sent := func(allowed string) bool { return strings.EqualFold(allowed, origins[0]) }
	switch {
	case len(origins) == 1 && slices.ContainsFunc(x.proxy.Origins, sent):
		return nil
	case len(origins) > 0:
		return refusef(http.StatusForbidden, reason, title,
			"a web page of %q sent the request: to allow that, start the proxy with --allow-origin",
			words.Clip(strings.Join(origins, ", ")))
	case slices.ContainsFunc(x.r.Header.Values("Sec-Fetch-Site"), foreign):
		return refusef(http.StatusForbidden, reason, title,
			"a web page of another site sent the request: only those named with --allow-origin may")
	}
	return nil
}

// CheckOrigin returns an error for a text that is not an origin.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin || u.User != nil ||
		strings.Contains(origin, "*") {
		return fmt.Errorf("%q is not an origin such as https://dashboard.example: a scheme and a "+
			"host, nothing after it", origin)
	}
	return nil
}

var hostForm = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?$`)

// CheckHost returns an error for a name that cannot be a Host header.
func CheckHost(name string) error {
	if !hostForm.MatchString(name) {
		return fmt.Errorf("%q is not a name such as gate.lan or gate.lan:8090", name)
	}
	return nil
}

// share adds the headers that let a web page of p.Origins read the response. It answers the
// preflight requests of browsers, which cost nothing.
func (x *exchange) share() error {
	h, r := x.w.Header(), x.r
	if len(x.proxy.Origins) > 0 {
		h.Add("Vary", "Origin")
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "ETag, Location, Range, RateLimit, "+
		"RateLimit-Policy, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return nil
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	if headers := r.Header.Values("Access-Control-Request-Headers"); len(headers) > 0 {
		h.Set("Access-Control-Allow-Headers", strings.Join(headers, ", "))
		h.Add("Vary", "Access-Control-Request-Headers")
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", "600")
	x.w.WriteHeader(http.StatusNoContent)
	x.outcome = outcomePreflight
	return nil
}
