package config

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/limit"
)

const serveFile = `
serve:
  listen: 127.0.0.1:8081
  hosts: [Board.lan]
  store: redis
  trusted_proxies: [10.0.0.0/8, "2001:db8::1", "::ffff:192.0.2.0/120"]
  keys:
    # printf secret | sha256sum
    - name: acme-1
      organisation: acme
      tier: gold
      hash: "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
  limits:
    - {name: client, per: client, requests: 60, window: 1m, tiers: {gold: 600}}
    - name: search
      per: global
      route: GET /v1/search
      algorithm: counter
      requests: 5_000
      window: 1m
      cost: 5
      shards: 4
      when_unreachable: open
      observe: true
      count_denied: true
  policies:
    - {name: uploads, requests: 5, window: 10s}
`

func TestServe(t *testing.T) {
	s := load(t, serveFile).Serve
	if len(s.Limits) != 3 || !s.OnRedis || !s.Configured || s.Listen != "127.0.0.1:8081" ||
		fmt.Sprint(s.Hosts) != "[board.lan]" {
		t.Fatalf("%+v", s)
	}
	client, search := s.Limits[0], s.Limits[1]
	want := limit.Policy{Name: "client", Units: 60, Window: time.Minute, Algorithm: limit.Log}
	if client.Policy != want || client.By != limit.ByClient || client.Open || client.Cost != 1 ||
		client.Tiers["gold"].Units != 600 || client.Tiers["gold"].Window != time.Minute {
		t.Errorf("%+v", client)
	}
	want = limit.Policy{Name: "search", Units: 5000, Window: time.Minute,
		Algorithm: limit.Counter, CountDenied: true, Shards: 4}
	if search.Policy != want || !search.Open || !search.Observe || search.Cost != 5 ||
		fmt.Sprint(search.Routes) != "[GET /v1/search]" {
		t.Errorf("%+v", search)
	}
	want = limit.Policy{Name: "uploads", Units: 5, Window: 10 * time.Second, Algorithm: limit.Log}
	if uploads := s.Limits[2]; uploads.Policy != want || uploads.By != limit.ByDecision {
		t.Errorf("%+v", uploads)
	}
	r := &http.Request{RemoteAddr: "10.1.1.1:80", Header: http.Header{
		"X-Forwarded-For": {"198.51.100.7"}, "Authorization": {"Bearer secret"}}}
	who := s.Known.Of(r)
	if who.Network != "198.51.100.7/32" || who.Key != "acme-1" || who.Tier != "gold" {
		t.Errorf("%+v", who)
	}
	r.RemoteAddr = "[::ffff:192.0.2.9]:80"
	if who := s.Known.Of(r); who.Network != "198.51.100.7/32" {
		t.Errorf("behind %s: %+v", r.RemoteAddr, who)
	}
}

// TestWhenUnreachable: the section's when_unreachable is the default of its limits.
func TestWhenUnreachable(t *testing.T) {
	limits := load(t, "serve: {limits: [{name: a, per: global, requests: 1, window: 1s}, "+
		"{name: b, per: global, requests: 1, window: 1s, when_unreachable: closed}], "+
		"when_unreachable: open}").Serve.Limits
	if !limits[0].Open || limits[1].Open {
		t.Errorf("%+v", limits)
	}
}

// TestLinksAreLimited: a public server limits the short links of each client, unless a limit for
// them is configured.
func TestLinksAreLimited(t *testing.T) {
	links := func(per string) string {
		return "serve: {public: true, limits: [{name: l, route: POST /v1/links, per: " + per +
			", requests: 1, window: 1s}]}"
	}
	for text, want := range map[string]int{"serve: {}": 0, "serve: {public: true}": 1,
		links("client"): 1, links("global"): 1, links("key"): 2, links("organisation"): 2} {
		limits := load(t, text).Serve.Limits
		if len(limits) != want {
			t.Errorf("%s: %+v", text, limits)
		}
	}
}

func TestServeProblems(t *testing.T) {
	const hash = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	const key = "keys:\n - {name: k, hash: '" + hash + "'"
	one := "limits:\n - {name: p, per: client, requests: 5, window: 1m, "
	global := "limits: [{name: p, per: global, requests: 5, "
	for _, c := range []struct{ text, want string }{
		{"limit: []", `2: serve: unknown key "limit" (did you mean limits?)`},
		{"listen: ''", "2: serve.listen: must be a host and a port, such as 127.0.0.1:8080"},
		{"hosts: ['a:80']", "2: serve.hosts: must be a name without port"},
		{"store: ledger", "2: serve.store: must be memory or redis"},
		{"trusted_proxies: [a]", `2: serve.trusted_proxies: "a" is neither an address nor a net`},
		{"trusted_proxies: ['::/0']", "2: serve.trusted_proxies: ::/0 trusts everybody"},
		{"trusted_proxies: ['::ffff:0:0/96']",
			"2: serve.trusted_proxies: ::ffff:0:0/96 trusts everybody"},
		{"limits: [{name: p}]", "serve.limits: per is missing"},
		{"policies: [{name: p}]", "serve.policies: requests is missing"},
		{one + "burst: 1}", `3: serve.limits: unknown key "burst"`},
		{one + "cost: 6}", "3: serve.limits: p: cost 6 never fits into 5 units"},
		{one + "cost: 2, shards: 4}", "cost 2 never fits into 1 units"},
		{one + "shards: 6}", "3: serve.limits: p: shards must be 1 to 64"},
		{one + "algorithm: leaky}", "3: limits.algorithm: must be log, counter or fixed"},
		{one + "tiers: {gold: 0}}", "3: tiers.gold: must be 1 to 4294967296"},
		{one + "tiers: {Gold: 1}}", `"Gold": write units by the name of a tier`},
		{one + "when_unreachable: maybe}", "limits.when_unreachable: must be closed or open"},
		{" listen: 8080", "2: serve.listen: must be a host and a port, such as 127.0.0.1:8080"},
		{one + "route: [1, []]}", "3: limits.route: must be text (in quotes)"},
		{"limits: [{name: p, per: client, requests: 5, window: 48h}]",
			"limits.window: must be at most 24h per client"},
		{"limits: [{name: p, per: decision, requests: 5, window: 1m}]",
			"limits.per: must be client, key, organisation, route or global"},
		{global + "window: 0s}]", `limits.window: "0s" is not a duration from 1µs to 8784h`},
		{global + "window: 1m, tiers: {a: 1}}]", "tiers require a limit per client or per key"},
		{"policies: [{name: p, requests: 5, window: 1m, route: GET /}]",
			`serve.policies: unknown key "route"`},
		{"limits:\n - {name: p, per: global, requests: 5, window: 1m}\n" +
			"policies:\n - {name: p, requests: 5, window: 1m}",
			"5: policies.name: there is another limit or policy called p"},
		{"keys:\n - {name: k, hash: secret}", "3: keys.hash: must be sha256: and the 64 digits"},
		{key + "}\n - {name: l, hash: '" + hash + "'}", "4: keys.hash: already used by key k"},
		{key + "}\n - {name: k, hash: 'sha256:" + strings.Repeat("1", 64) + "'}",
			"4: keys.name: there is another key called k"},
		{key + ", tier: gold}", `3: keys.tier: no limit has a tier "gold"`},
	} {
		text := strings.ReplaceAll("\n"+c.text, "\n", "\n ")
		problem := expectProblem(t, "serve:"+text, c.want)
		if strings.Contains(c.text, "leaky") && strings.Contains(problem, "\n") {
			t.Errorf("%s: more than one problem:\n%s", c.text, problem)
		}
	}
}

// TestBucketsOfTokens: a line of a token file may name only buckets that a credential has.
func TestBucketsOfTokens(t *testing.T) {
	t.Parallel()
	cfg, err := Load(t.Context(), "", env("QUOTA_STATE_DIR", t.TempDir()))
	must(t, err)
	for line, want := range map[string]string{
		"bucket=default": "", "most=search_list=5": "", "bucket=default/part": "",
		"bucket=defualt":  `no credential has the bucket "defualt" (did you mean default?)`,
		"most=moneys=500": `no credential has the bucket "moneys"`,
	} {
		path := filepath.Join(t.TempDir(), "tokens")
		must(t, os.WriteFile(path, []byte("ci ci-token-0123456789ab "+line), 0o600))
		_, err := cfg.ReadTokens("token_file:", path, false)
		if err != nil && !strings.Contains(err.Error(), want) || (want == "") != (err == nil) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
