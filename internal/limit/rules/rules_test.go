package rules

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/limit"
	"quotabudget/internal/yamlfile"
)

func read(t *testing.T, text string) (Rules, string) {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	var r yamlfile.Reader
	rules := section(&r, n.Content[0])
	var problems []string
	for _, p := range r.Sorted() {
		problems = append(problems, p.String())
	}
	return rules, strings.Join(problems, "\n")
}

// section reads a section that contains only limits.
func section(in *yamlfile.Reader, n *yaml.Node) Rules {
	r, known := NewReader(in), yamlfile.Fields{}
	r.AddTo(known)
	in.Fields(n, "serve", known)
	return r.Rules()
}

const whole = `store: redis
trusted_proxies: [10.0.0.0/8, "2001:db8::1"]
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

func TestRead(t *testing.T) {
	rules, problems := read(t, whole)
	if problems != "" {
		t.Fatal(problems)
	}
	if len(rules.Limits) != 3 || !rules.OnRedis {
		t.Fatalf("%+v", rules)
	}
	client, search := rules.Limits[0], rules.Limits[1]
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
	if uploads := rules.Limits[2]; uploads.Policy != want || uploads.By != limit.ByDecision {
		t.Errorf("%+v", uploads)
	}
	r := &http.Request{RemoteAddr: "10.1.1.1:80", Header: http.Header{
		"X-Forwarded-For": {"198.51.100.7"}, "Authorization": {"Bearer secret"}}}
	who := rules.Known.Of(r)
	if who.Network != "198.51.100.7/32" || who.Key != "acme-1" || who.Tier != "gold" {
		t.Errorf("%+v", who)
	}
}

// TestWhenUnreachable: when_unreachable works in any order of the keys.
func TestWhenUnreachable(t *testing.T) {
	const limits = "limits: [{name: a, per: global, requests: 1, window: 1s}, " +
		"{name: b, per: global, requests: 1, window: 1s, when_unreachable: closed}]\n"
	for _, text := range []string{limits + "when_unreachable: open", "when_unreachable: open\n" + limits} {
		if rules, _ := read(t, text); !rules.Limits[0].Open || rules.Limits[1].Open {
			t.Errorf("%s: %+v", text, rules.Limits)
		}
	}
}

// TestProblems lists invalid configurations with the problem and line reported.
func TestProblems(t *testing.T) {
	const hash = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	one := "limits:\n - {name: p, per: client, requests: 5, window: 1m, "
	for _, test := range []struct{ text, want string }{
		{"limit: []", `line 1: serve: unknown key "limit"`},
		{"store: ledger", `line 1: store: "ledger": write memory or redis`},
		{"trusted_proxies: [a]", `line 1: trusted_proxies: "a" is neither an address nor a network`},
		{"trusted_proxies: ['::/0']", `line 1: trusted_proxies: ::/0 trusts everybody`},
		{"limits: [{name: p}]", "limit: per is missing"},
		{"policies: [{name: p}]", "policy: requests is missing"},
		{one + "burst: 1}", `line 2: limit: unknown key "burst"`},
		{one + "cost: 6}", "line 2: p: cost 6 never fits into 5 units"},
		{one + "cost: 2, shards: 4}", "cost 2 never fits into 1 units"},
		{one + "shards: 6}", "line 2: p: shards must be 1 to 64"},
		{one + "algorithm: leaky}", `algorithm: "leaky": write log, counter or fixed`},
		{one + "tiers: {gold: 0}}", "tiers: gold: 0 is out of range"},
		{one + "when_unreachable: maybe}", `when_unreachable: "maybe": write closed or open`},
		{one + "route: [1, []]}", "line 2: route:"},
		{"limits: [{name: p, per: client, requests: 5, window: 48h}]",
			"the window of a limit per client must be at most 24h"},
		{"limits: [{name: p, per: decision, requests: 5, window: 1m}]",
			`per: "decision": write client, key, organisation, route or global`},
		{"limits: [{name: p, per: global, requests: 5, window: 0s}]",
			`window: "0s" is not a duration`},
		{"limits: [{name: p, per: global, requests: 5, window: 1m, tiers: {a: 1}}]",
			"tiers require a limit per client or per key"},
		{"policies: [{name: p, requests: 5, window: 1m, route: GET /}]",
			`policy: unknown key "route"`},
		{"limits:\n" +
			" - {name: p, per: global, requests: 5, window: 1m}\n" +
			"policies:\n - {name: p, requests: 5, window: 1m}",
			"line 4: name: there is another limit or policy called p"},
		{"keys:\n - {name: k, hash: secret}", "line 2: hash: write sha256: and the 64"},
		{"keys:\n - {name: k, hash: '" + hash + "'}\n - {name: l, hash: '" + hash + "'}",
			"line 3: hash: already used by key k"},
		{"keys:\n - {name: k, tier: gold, hash: '" + hash + "'}",
			`line 2: tier: no limit has a tier "gold"`},
	} {
		if _, problems := read(t, test.text); !strings.Contains(problems, test.want) {
			t.Errorf("%s\n%s\nwant %s", test.text, problems, test.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(whole)
	f.Fuzz(func(t *testing.T, text string) {
		var n yaml.Node
		if yaml.Unmarshal([]byte(text), &n) != nil || len(n.Content) == 0 {
			return
		}
		var r yamlfile.Reader
		rules := section(&r, n.Content[0])
		for _, l := range rules.Limits {
			if err := l.Check(); err != nil && len(r.Problems) == 0 {
				t.Errorf("%+v: %v", l, err)
			}
		}
	})
}
