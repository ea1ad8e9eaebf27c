package limit

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks whose forwarding headers are trusted.
type Proxies []netip.Prefix

// headers lists the forwarding headers, each with a function that returns its hops, the nearest
// last.
var headers = []struct {
	name string
	hops func(values []string) []string
}{
	{"Forwarded", forwarded},
	{"X-Forwarded-For", commas},
	{"Cf-Connecting-Ip", single},
}

// maxHops bounds the hops read from a header.
const maxHops = 32

// Addr returns the client's address: the nearest one that is not a trusted proxy. It is invalid
// for a request without an address, as over a Unix socket.
//
// A header is read from the right, because a client can forge everything left of what a trusted
// proxy wrote. Proxies often pass on headers they do not know, so if two headers disagree, one of
// them may be forged, and the request counts as the proxy's. A forged header therefore never
// yields an address that the client chose.
func (p Proxies) Addr(r *http.Request) netip.Addr {
	peer := parse(r.RemoteAddr)
	if !p.trusts(peer) {
		return peer
	}
	var client netip.Addr
	for _, h := range headers {
		values := r.Header.Values(h.name)
		if len(values) == 0 {
			continue
		}
		addr := p.nearest(peer, h.hops(values))
		if client.IsValid() && addr != client {
			return peer
		}
		client = addr
	}
	if !client.IsValid() {
		return peer
	}
	return client
}

// nearest follows the hops from the right to the first untrusted one. At a hop that is not an
// address it stops, and returns the address before it.
func (p Proxies) nearest(peer netip.Addr, hops []string) netip.Addr {
	for i, hop := range slices.Backward(hops) {
		addr := parse(hop)
		if !addr.IsValid() || i < len(hops)-maxHops {
			return peer
		}
		if peer = addr; !p.trusts(addr) {
			break
		}
	}
	return peer
}

func (p Proxies) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(p, func(prefix netip.Prefix) bool { return prefix.Contains(a) })
}

// Network returns the network that is limited as one client: an IPv4 address, or the /64 of an IPv6
// address, the usual size for one subscriber.
func Network(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	network, _ := a.Prefix(bits)
	return network
}

// parse reads an address with or without a port. It returns an invalid one on failure.
func parse(s string) netip.Addr {
	s = strings.TrimSpace(s)
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		s = s[1 : len(s)-1]
	}
	a, _ := netip.ParseAddr(s)
	return a.Unmap().WithZone("")
}

func commas(values []string) []string { return strings.Split(strings.Join(values, ","), ",") }

// single returns the value of a header that must occur once.
func single(values []string) []string {
	if len(values) > 1 {
		return []string{""}
	}
	return values
}

// forwarded reads the for= of each element (RFC 7239). An element without one counts as an
// invalid address. So does a line with an unclosed quote, which would swallow what the proxy
// appended.
func forwarded(values []string) (hops []string) {
	for _, line := range values {
		if strings.Count(line, `"`)%2 == 1 {
			hops = append(hops, "")
			continue
		}
		hops = append(hops, forwardedLine(line)...)
	}
	return hops
}

func forwardedLine(line string) (hops []string) {
	for _, element := range split(line, ',') {
		hop := ""
		for _, pair := range split(element, ';') {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if strings.EqualFold(name, "for") {
				hop = strings.Trim(value, `"`)
			}
		}
		hops = append(hops, hop)
	}
	return hops
}

// split splits text at a separator outside quotes.
func split(s string, separator rune) []string {
	quoted := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == separator && !quoted
	})
}
