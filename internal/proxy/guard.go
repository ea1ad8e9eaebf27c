package proxy

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// checkHost refuses a request that was not addressed to this proxy by its address or by a name given to it. A web page whose
// own name was made to point here (DNS rebinding) sends that name.
func (p *Proxy) checkHost(r *http.Request) error {
	host := plainHost(r.Host)
	if slices.Contains(ownHosts(r), host) {
		return nil
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	for _, allowed := range p.Hosts {
		if allowed = plainHost(allowed); allowed == host || allowed == name {
			return nil
		}
	}
	return &refusal{status: http.StatusForbidden, title: "host is not allowed", reason: "hostNotAllowed",
		detail: fmt.Sprintf("the request is for host %q, which is not this proxy: use its own address, or start it with --host NAME", clip(r.Host))}
}

// ownHosts are the Host headers that name the address on which a request came in. On loopback that is localhost, too; a unix
// socket has no other name.
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

// plainHost is a Host header in the one form in which it is compared: lower case, and without the dot of the root.
func plainHost(host string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return strings.TrimSuffix(strings.ToLower(host), ".")
	}
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(name), "."), port)
}

// checkOrigin refuses a request that a web page sent, unless the page is one of p.Origins.
func (p *Proxy) checkOrigin(r *http.Request) error {
	refused := &refusal{status: http.StatusForbidden, title: "origin is not allowed", reason: "originNotAllowed"}
	origins, sites := r.Header.Values("Origin"), r.Header.Values("Sec-Fetch-Site")
	switch {
	case len(origins) == 1 && p.allows(origins[0]):
		return nil
	case len(origins) > 0:
		refused.detail = fmt.Sprintf("a web page of %q sent the request: to allow that, start the proxy with --allow-origin",
			clip(strings.Join(origins, ", ")))
		return refused
	}
	for _, site := range sites {
		if site != "none" && site != "same-origin" {
			refused.detail = "a web page of another site sent the request: only one named with --allow-origin may"
			return refused
		}
	}
	return nil
}

func (p *Proxy) allows(origin string) bool {
	return slices.ContainsFunc(p.Origins, func(o string) bool { return strings.EqualFold(o, origin) })
}

// CheckOrigin reports what is wrong with an origin as a person writes it.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin || u.User != nil || strings.Contains(origin, "*") {
		return fmt.Errorf("%q is not an origin such as https://dashboard.example: a scheme and a host, nothing after it", origin)
	}
	return nil
}

// share tells a web page of p.Origins that it may use the answer, and answers its browser's question beforehand (a preflight),
// which costs nothing. It reports whether the request was such a question.
func (p *Proxy) share(w http.ResponseWriter, r *http.Request) (answered bool) {
	if len(p.Origins) > 0 {
		w.Header().Add("Vary", "Origin")
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "ETag, Location, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
	if asked := r.Header.Values("Access-Control-Request-Headers"); len(asked) > 0 {
		h.Set("Access-Control-Allow-Headers", strings.Join(asked, ", "))
		h.Add("Vary", "Access-Control-Request-Headers")
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
