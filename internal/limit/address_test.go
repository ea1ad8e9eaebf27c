package limit

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

func TestAddr(t *testing.T) {
	proxies := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	const proxy, somebody = "10.0.0.1:999", "203.0.113.5:1234"
	for _, test := range []struct {
		name, peer, headers, want string
	}{
		{"nobody's header is believed", somebody, "X-Forwarded-For: 1.1.1.1", "203.0.113.5"},
		{"nor this one", somebody, "CF-Connecting-IP: 1.1.1.1", "203.0.113.5"},
		{"no header", proxy, "", "10.0.0.1"},
		{"one hop", proxy, "X-Forwarded-For: 198.51.100.7", "198.51.100.7"},
		{"what is left of it is made up", proxy, "X-Forwarded-For: 1.1.1.1, 2.2.2.2, 198.51.100.7",
			"198.51.100.7"},
		{"through two proxies", proxy, "X-Forwarded-For: 1.1.1.1, 198.51.100.7, 10.0.0.2",
			"198.51.100.7"},
		{"in two lines", proxy, "X-Forwarded-For: 1.1.1.1|X-Forwarded-For: 198.51.100.7",
			"198.51.100.7"},
		{"only proxies", proxy, "X-Forwarded-For: 10.0.0.3, 10.0.0.2", "10.0.0.3"},
		{"no address", proxy, "X-Forwarded-For: unknown", "10.0.0.1"},
		{"no address behind a proxy", proxy, "X-Forwarded-For: ' OR 1, 10.0.0.2", "10.0.0.2"},
		{"empty", proxy, "X-Forwarded-For: ", "10.0.0.1"},
		{"with a port", proxy, "X-Forwarded-For: 198.51.100.7:4711", "198.51.100.7"},
		{"IPv6", "[2001:db8:1::5]:80", "X-Forwarded-For: 2001:db8:2::9", "2001:db8:2::9"},
		{"IPv6 with a port and a zone", proxy, "X-Forwarded-For: [fe80::1%eth0]:80", "fe80::1"},
		{"IPv4 in IPv6", "[::ffff:10.0.0.1]:80", "X-Forwarded-For: ::ffff:198.51.100.7",
			"198.51.100.7"},
		{"Forwarded", proxy, `Forwarded: for=1.1.1.1, for="[2001:db8:2::9]:4711";proto=https;by=10.0.0.1`,
			"2001:db8:2::9"},
		{"Forwarded with commas in quotes", proxy, `Forwarded: for=198.51.100.7;host="a,b;for=9.9.9.9"`,
			"198.51.100.7"},
		{"Forwarded with a quote that swallows the rest", proxy,
			`Forwarded: for=1.1.1.1;x=", for=198.51.100.7`, "10.0.0.1"},
		{"the same with an IPv6 address", proxy,
			`Forwarded: for=1.1.1.1;x=", for="[2001:db8:2::9]"`, "10.0.0.1"},
		{"a quote in a line of its own", proxy,
			`Forwarded: for=1.1.1.1;x="|Forwarded: for=198.51.100.7`, "198.51.100.7"},
		{"Forwarded, hidden", proxy, "Forwarded: for=_hidden", "10.0.0.1"},
		{"Forwarded without for", proxy, "Forwarded: for=1.1.1.1, proto=https", "10.0.0.1"},
		{"Cloudflare", proxy, "CF-Connecting-IP: 198.51.100.7|X-Forwarded-For: 1.1.1.1, 198.51.100.7",
			"198.51.100.7"},
		{"two that disagree", proxy, "Forwarded: for=1.1.1.1|X-Forwarded-For: 198.51.100.7",
			"10.0.0.1"},
		{"twice what must be there once", proxy, "CF-Connecting-IP: 1.1.1.1|CF-Connecting-IP: 2.2.2.2",
			"10.0.0.1"},
		{"a Unix socket", "@", "X-Forwarded-For: 1.1.1.1", "invalid IP"},
		{"more hops than anybody has", proxy,
			"X-Forwarded-For: 1.1.1.1" + strings.Repeat(", 10.0.0.2", 100), "10.0.0.2"},
	} {
		r := &http.Request{RemoteAddr: test.peer, Header: http.Header{}}
		for line := range strings.SplitSeq(test.headers, "|") {
			if name, value, ok := strings.Cut(line, ":"); ok {
				r.Header.Add(name, strings.TrimSpace(value))
			}
		}
		if got := proxies.Addr(r).String(); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func FuzzAddr(f *testing.F) {
	f.Add("for=1.1.1.1", "10.0.0.2, 2.2.2.2", "")
	f.Fuzz(func(t *testing.T, forwarded, xff, cf string) {
		proxies := Proxies{netip.MustParsePrefix("10.0.0.0/8")}
		r := &http.Request{RemoteAddr: "10.0.0.1:1", Header: http.Header{
			"Forwarded":       {forwarded + ", for=198.51.100.7"},
			"X-Forwarded-For": {xff, "198.51.100.7"}, "Cf-Connecting-Ip": {cf}}}
		if got := proxies.Addr(r).String(); got != "198.51.100.7" && got != "10.0.0.1" {
			t.Errorf("forged: %s", got)
		}
	})
}

func TestKnown(t *testing.T) {
	digest, err := ParseDigest("sha256:" + strings.Repeat("0", 64))
	if err != nil || digest != (Digest{}) {
		t.Fatal(digest, err)
	}
	known := &Known{Keys: map[Digest]APIKey{
		sha256.Sum256([]byte("secret")): {Name: "k1", Organisation: "acme", Tier: "gold"},
	}}
	address := Caller{Network: "203.0.113.5/32"}
	gold := Caller{Network: "203.0.113.5/32", Key: "k1", Organisation: "acme", Tier: "gold"}
	for header, want := range map[string]Caller{
		"": address, "Authorization: Bearer secret": gold, "Authorization: bearer  secret ": gold,
		"X-API-Key: secret": gold, "X-API-Key: made up": address, "Authorization: Bearer ": address,
		"Authorization: Basic secret":                                    address,
		"Authorization: Bearer a token of the server\nX-API-Key: secret": gold,
	} {
		r := &http.Request{RemoteAddr: "203.0.113.5:80", Header: http.Header{}}
		for line := range strings.Lines(header) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			r.Header.Set(name, value)
		}
		if got := known.Of(r); got != want {
			t.Errorf("%q: %+v", header, got)
		}
	}
	for addr, want := range map[string]string{"@": "", // a Unix socket
		"198.51.100.7:80": "198.51.100.7/32", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64"} {
		if got := (&Known{}).Of(&http.Request{RemoteAddr: addr}); got != (Caller{Network: want}) {
			t.Errorf("%s: %+v", addr, got)
		}
	}
}

func TestParseDigest(t *testing.T) {
	for _, bad := range []string{"", "sha256:", strings.Repeat("0", 64),
		"sha256:" + strings.Repeat("0", 63),
		"sha256:" + strings.Repeat("0", 66), "sha256:" + strings.Repeat("g", 64)} {
		if _, err := ParseDigest(bad); err == nil {
			t.Errorf("%q is a digest", bad)
		}
	}
}
