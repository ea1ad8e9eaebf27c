package proxy_test

import (
	"net/http"
	"strings"
	"testing"

	"quotabudget/internal/proxy"
)

// TestHost: only who names the proxy as itself is served. A page whose own name was made to point
// here sends that name.
func TestHost(t *testing.T) {
	s := open(t, units(100), func(s *station) { s.Hosts = []string{"Proxy.lan", "gate.lan:8080"} })
	_, port, _ := strings.Cut(s.local(), ":")
	served := int64(0)
	for host, want := range map[string]int{
		s.local(): 200, "localhost:" + port: 200, "LOCALHOST.:" + port: 200, "[::1]:" + port: 200,
		"proxy.lan": 200, "PROXY.lan:" + port: 200, "proxy.lan.:99": 200, "gate.lan:8080": 200,

		"evil.example": 403, "evil.example:" + port: 403, "localhost": 403, "127.0.0.1": 403,
		"localhost:1": 403, "127.0.0.2:" + port: 403, "gate.lan": 403, "gate.lan:8081": 403,
		"localhost.evil.example:" + port: 403, "proxy.lan.evil.example": 403,
		"youtube.googleapis.com": 403,
	} {
		a := s.get(t, chart, "Host", host)
		if a.status != want {
			t.Errorf("Host %s: %d %s", host, a.status, a.body)
		}
		if want == http.StatusOK {
			served++
		} else {
			a.refused(t, want)
		}
	}
	s.counted(t, served, served)
}

// TestOrigin: a web page is refused, whatever it can make a browser send, and costs nothing; one
// that was named is served.
func TestOrigin(t *testing.T) {
	s := open(t, units(100), origins)
	for _, c := range []struct {
		header []string
		want   int
	}{
		{[]string{"Origin", "https://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Origin", ""}, 403},
		{[]string{"Origin", "http://" + s.local()}, 403},
		{[]string{"Origin", "https://dashboard.example.evil.example"}, 403},
		{[]string{"Origin", "https://dashboard.example:8443"}, 403},
		{[]string{"Origin", "http://dashboard.example"}, 403},
		{[]string{"Origin", "https://dashboard.example", "Origin", "https://evil.example"}, 403},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Sec-Fetch-Site", "same-site"}, 403},
		{[]string{"Sec-Fetch-Site", "none", "Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Sec-Fetch-Site", "odd"}, 403},

		{nil, 200},
		{[]string{"Sec-Fetch-Site", "none"}, 200},
		{[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		{[]string{"Origin", "https://dashboard.example", "Sec-Fetch-Site", "cross-site"}, 200},
		{[]string{"Origin", "HTTPS://Dashboard.example"}, 200},
	} {
		a := s.get(t, chart, c.header...)
		if a.status != c.want {
			t.Errorf("%q: %d %s", c.header, a.status, a.body)
		}
		allowed := a.header.Get("Access-Control-Allow-Origin")
		if wanted := c.want == http.StatusOK && len(c.header) > 0 &&
			c.header[0] == "Origin"; wanted != (allowed != "") {
			t.Errorf("%q: Access-Control-Allow-Origin %q", c.header, allowed)
		}
		if c.want != http.StatusOK {
			a.refused(t, c.want)
		} else if asked := s.asked.Load(); asked.Header.Get("Origin") != "" ||
			asked.Header.Get("Sec-Fetch-Site") != "" {
			t.Errorf("the upstream was told %v", asked.Header)
		}
	}
	s.counted(t, 5, 5)
}

// TestPreflight: a browser that asks beforehand pays nothing, and may then do what it asked for.
func TestPreflight(t *testing.T) {
	s := open(t, units(1), origins)
	ask := func(origin string) answer {
		return s.do(t, "OPTIONS", chart, "", "Origin", origin,
			"Access-Control-Request-Method", "GET",
			"Access-Control-Request-Headers", "x-quota-token",
			"Access-Control-Request-Private-Network", "true")
	}
	a := ask("https://dashboard.example")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin":          "https://dashboard.example",
		"Access-Control-Allow-Headers":         "x-quota-token",
		"Access-Control-Allow-Private-Network": "true",
	} {
		if got := a.header.Get(name); a.status != http.StatusNoContent || got != want {
			t.Errorf("%d, %s: %q", a.status, name, got)
		}
	}
	if a := ask("https://evil.example"); a.status != 403 ||
		a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a stranger: %+v", a)
	}
	s.counted(t, 0, 0)
	s.get(t, chart)
	a = s.get(t, chart, "Origin", "https://dashboard.example")
	if a.refused(t, 429); a.header.Get("Access-Control-Allow-Origin") == "" ||
		!strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "Retry-After") {
		t.Errorf("the page cannot read why it was refused: %v", a.header)
	}
}

func TestCheckOrigin(t *testing.T) {
	for origin, want := range map[string]bool{
		"https://dashboard.example": true, "http://localhost:3000": true,
		"chrome-extension://abc": true, "": false, "*": false, "https://*.example": false,
		"null": false, "https://dashboard.example/": false, "https://u@dashboard.example": false,
		"dashboard.example": false, "https://dashboard.example?a": false,
	} {
		if err := proxy.CheckOrigin(origin); (err == nil) != want {
			t.Errorf("%q: %v", origin, err)
		}
	}
}
