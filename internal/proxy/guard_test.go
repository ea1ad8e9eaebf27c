package proxy_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"quotabudget/internal/limit"
	"quotabudget/internal/proxy"
	"quotabudget/internal/quota"
)

// TestHost: only requests with the proxy's own Host are served. A web page whose own name points
// here sends that name.
func TestHost(t *testing.T) {
	hosts := []string{"Proxy.lan", "gate.lan:8080"}
	s := open(t, units(100), func(s *env) { s.proxy.Hosts = hosts })
	_, port, _ := strings.Cut(s.local, ":")
	served := int64(0)
	for host, want := range map[string]int{
		s.local: 200, "localhost:" + port: 200, "LOCALHOST.:" + port: 200, "[::1]:" + port: 200,
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
	s.Counted(t, served, served)
}

// TestOrigin: web pages are refused for free, whatever they can make a browser send. Pages of an
// allowed origin are served.
func TestOrigin(t *testing.T) {
	s := open(t, units(100), origins)
	for _, c := range []struct {
		header []string
		want   int
	}{
		{[]string{"Origin", "https://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Origin", ""}, 403},
		{[]string{"Origin", "http://" + s.local}, 403},
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
		} else if asked := s.Asked.Load(); asked.Header.Get("Origin") != "" ||
			asked.Header.Get("Sec-Fetch-Site") != "" {
			t.Errorf("the upstream got %v", asked.Header)
		}
	}
	s.Counted(t, 5, 5)
}

// TestPreflight: a preflight is free, and the request after it is served.
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
		"Access-Control-Allow-Methods":         "GET, POST, PUT, PATCH, DELETE",
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
	s.Counted(t, 0, 0)
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

const (
	token  = "0123456789abcdef-nightly"
	person = "fedcba9876543210"
	trace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	tokens = "# who may call\n\nnightly " + token + "\r\n  adhoc\t" + person + " manual\n"
)

// withCallers requires tokens.
func withCallers(t testing.TB) func(*env) {
	known, err := limit.ParseTokens("tokens", tokens, true)
	must(t, err)
	return func(s *env) { s.proxy.Callers = known }
}

// TestCallers: the proxy serves a caller whose token is in any of the accepted places, and the
// ledger has its name and the trace of its request. Refusing any other caller costs no units.
func TestCallers(t *testing.T) {
	s := open(t, units(100), withCallers(t))
	for _, header := range [][]string{
		nil, {"X-Quota-Token", "wrong"}, {"X-Quota-Token", token + "x"},
		{"X-Quota-Token", token[:20]},
		{"X-Quota-Token", strings.ToUpper(token)}, {"X-Quota-Token", "nightly"},
		{"X-Quota-Token", "wrong", "Authorization", "Bearer " + token},
		{"X-Quota-Token", "wrong", "X-Goog-Api-Key", token},
		{"Authorization", "Basic " + token}, {"Authorization", token},
		{"Authorization", "Bearer wrong"},
		{"Proxy-Authorization", "Bearer " + token}, {"X-Goog-Api-Key", "wrong"},
	} {
		a := s.get(t, chart, header...)
		if a.refused(t, 401); a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%q: %v", header, a.header)
		}
	}
	for _, header := range [][]string{{"X-Quota-Token", token, "X-Quota-Token", token},
		{"X-Goog-Api-Key", token, "X-Goog-Api-Key", "b"}} {
		s.get(t, chart, header...).refused(t, 400)
	}
	s.Counted(t, 0, 0)
	for _, header := range [][]string{
		{"X-Quota-Token", token}, {"Authorization", "Bearer " + token},
		{"authorization", "bearer " + token}, {"X-Goog-Api-Key", token},
		{"Authorization", "token " + token},
		{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+token))},
	} {
		header = append(header, "Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
		if a := s.get(t, chart, header...); a.status != 200 {
			t.Errorf("%q: %d %s", header, a.status, a.body)
		}
		asked := s.Asked.Load()
		if asked.Header.Get("X-Quota-Token")+asked.Header.Get("Authorization") != "" ||
			asked.Header.Get("X-Goog-Api-Key") != canary {
			t.Errorf("%q: the upstream was sent %v", header, asked.Header)
		}
	}
	s.get(t, chart, "X-Quota-Token", token, "Range", "bytes=0-9", "Accept-Encoding", "br")
	if how := s.Asked.Load().Header.Get("Accept-Encoding"); how != "identity" {
		t.Errorf("a part is requested in the encoding %q, in which no key is found", how)
	}
	if a := s.get(t, chart+"&key="+token); a.status != 200 ||
		strings.Contains(s.Asked.Load().RequestURI, "key") {
		t.Errorf("as a key: %d %s", a.status, a.body)
	}
	s.Counted(t, 8, 8)
	entries, err := s.Ledger.Entries(t.Context(),
		quota.Query{Credential: "key1", Bucket: "default"})
	must(t, err)
	traced := 0
	for _, e := range entries {
		if e.Labels[quota.LabelCaller] != "nightly" {
			t.Errorf("labels %v", e.Labels)
		}
		if e.Labels[quota.LabelTrace] == trace {
			traced++
		}
	}
	if traced != 6 {
		t.Errorf("%d entries have the trace, want 6", traced)
	}
	if log := s.Log.String(); strings.Contains(log, token) ||
		strings.Count(log, "caller=nightly") != 8 {
		t.Errorf("log: %s", log)
	}
}

// TestManualCallers: only callers marked as people may use the headroom.
func TestManualCallers(t *testing.T) {
	limits := units(10)
	limits[0].Headroom = 9
	s := open(t, limits, withCallers(t))
	if a := s.get(t, chart, "X-Quota-Token", token); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	s.get(t, chart, "X-Quota-Token", token).refused(t, 429)
	for range 9 {
		if a := s.get(t, chart, "X-Quota-Token", person); a.status != 200 {
			t.Errorf("a person: %d %s", a.status, a.body)
		}
	}
	s.get(t, chart, "X-Quota-Token", person).refused(t, 429)
	s.Counted(t, 10, 10)
}

// TestOAuth: if the method accepts a user's token, the proxy forwards the token and sends no key. A
// refusal then suspends no bucket, because it may concern another project's quota.
func TestOAuth(t *testing.T) {
	s := open(t, units(1000), withCallers(t), func(s *env) {
		s.Standin.Keys, s.Standin.Faults = nil, []string{"403-quota@1"}
	})
	a := s.get(t, chart, "X-Quota-Token", token, "Authorization", "Bearer ya29.user",
		"X-Goog-Api-Key", "own")
	asked := s.Asked.Load()
	if a.status != 403 || asked == nil || asked.Header.Get("Authorization") != "Bearer ya29.user" ||
		asked.Header.Get("X-Goog-Api-Key") != "" {
		t.Fatalf("%+v: the upstream was sent %+v", a, asked)
	}
	s.awaitUsed(t, 1)
	s.Standin.Keys = []string{canary}
	// the upstream does not accept our tokens
	for _, header := range []string{"X-Quota-Token", "X-Goog-Api-Key"} {
		if a := s.get(t, chart, header, token, "Authorization", "Bearer "+token); a.status != 200 {
			t.Errorf("%s: %d %s", header, a.status, a.body)
		}
		if sent := s.Asked.Load().Header.Get("Authorization"); sent != "" {
			t.Errorf("%s: the upstream was sent Authorization %s", header, sent)
		}
	}
	const links = "/youtube/v3/thirdPartyLinks?part=snippet"
	p := s.get(t, links, "X-Quota-Token", token, "Authorization", "Bearer ya29.user").refused(t,
		400)
	if !strings.Contains(p.Detail, "thirdPartyLinks.list takes no OAuth token") {
		t.Errorf("got %+v", p)
	}
	s.get(t, chart+"&access_token=ya29.user", "X-Quota-Token", token).refused(t, 400)
	if used := s.Used(t); used != 3 || strings.Contains(s.Log.String(), "ya29.user") {
		t.Errorf("%d units, log %s", used, s.Log)
	}
}
