package rules

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/limit"
	"quotabudget/internal/limit/guard"
	"quotabudget/internal/yamlfile"
)

func read(t *testing.T, text string) (Rules, string) {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	var r yamlfile.Reader
	rules := Read(&r, n.Content[0])
	var problems []string
	for _, p := range r.Sorted() {
		problems = append(problems, p.String())
	}
	return rules, strings.Join(problems, "\n")
}

const whole = `store: ledger
trusted_proxies: [10.0.0.0/8, "2001:db8::1"]
keys:
  # printf secret | sha256sum
  - name: acme-1
    organisation: acme
    tier: gold
    hash: "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
policies:
  - {name: client, by: client, limit: 60, window: 1m, tiers: {gold: 600}}
  - name: search
    by: global
    routes: [GET /v1/search]
    algorithm: counter
    limit: 5_000
    window: 1m
    cost: 5
    shards: 4
    when_unreachable: open
    observe: true
    count_denied: true
`

func TestRead(t *testing.T) {
	rules, problems := read(t, whole)
	if problems != "" {
		t.Fatal(problems)
	}
	if len(rules.Limits) != 2 || !rules.OnLedger {
		t.Fatalf("%+v", rules)
	}
	client, search := rules.Limits[0], rules.Limits[1]
	want := limit.Policy{Name: "client", Units: 60, Window: time.Minute, Algorithm: limit.Log}
	if client.Policy != want || client.By != guard.ByClient || client.Open || client.Cost != 1 ||
		client.Tiers["gold"].Units != 600 || client.Tiers["gold"].Window != time.Minute {
		t.Errorf("%+v", client)
	}
	want = limit.Policy{Name: "search", Units: 5000, Window: time.Minute,
		Algorithm: limit.Counter, CountDenied: true, Shards: 4}
	if search.Policy != want || !search.Open || !search.Observe || search.Cost != 5 ||
		fmt.Sprint(search.Routes) != "[GET /v1/search]" {
		t.Errorf("%+v", search)
	}
	r := &http.Request{RemoteAddr: "10.1.1.1:80", Header: http.Header{
		"X-Forwarded-For": {"198.51.100.7"}, "Authorization": {"Bearer secret"}}}
	who := rules.Known.Of(r)
	if who.Network != "198.51.100.7/32" || who.Key != "acme-1" || who.Tier != "gold" {
		t.Errorf("%+v", who)
	}
	if err := rules.CheckRoutes([]string{"GET /v1/search"}); err != nil {
		t.Error(err)
	}
	err := rules.CheckRoutes([]string{"GET /v1/searches"})
	if err == nil || !strings.Contains(err.Error(), `did you mean GET /v1/searches`) {
		t.Error(err)
	}
}

// TestProblems is what is wrong, each with its line.
func TestProblems(t *testing.T) {
	const hash = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	policy := "policies:\n - {name: p, by: client, limit: 5, window: 1m, "
	for _, test := range []struct{ text, want string }{
		{"policy: []", `line 1: limits: unknown key "policy"`},
		{"store: redis", `line 1: store: "redis": write memory or ledger`},
		{"trusted_proxies: [a]", `line 1: trusted_proxies: "a" is no address or network`},
		{"trusted_proxies: ['::/0']", `line 1: trusted_proxies: ::/0 trusts everybody`},
		{"policies: [{name: p}]", "policy: by is missing"},
		{policy + "burst: 1}", `line 2: policy: unknown key "burst"`},
		{policy + "cost: 6}", "line 2: policy p: a cost of 6 never fits into 5 units"},
		{policy + "cost: 2, shards: 4}", "a cost of 2 never fits into 1 units"},
		{policy + "shards: 6}", "line 2: policy p: shards must be 1 to 64"},
		{policy + "algorithm: leaky}", `algorithm: "leaky": write log, counter or fixed`},
		{policy + "tiers: {gold: 0}}", "tiers: gold: 0 is out of range"},
		{policy + "when_unreachable: maybe}", `when_unreachable: "maybe": write closed or open`},
		{"policies: [{name: p, by: client, limit: 5, window: 48h}]",
			"by client, the window is at most 24h"},
		{"policies: [{name: p, by: global, limit: 5, window: 0s}]",
			`window: "0s" is not a duration`},
		{"policies: [{name: p, by: global, limit: 5, window: 1m, tiers: {a: 1}}]",
			"tiers are for policies by client or by key"},
		{"policies: [{name: p, by: decision, limit: 5, window: 1m, routes: [GET /]}]",
			"a policy by decision has no routes"},
		{"policies:\n" +
			" - {name: p, by: global, limit: 5, window: 1m}\n" +
			" - {name: p, by: global, limit: 5, window: 1m}",
			"line 3: name: there is a policy p already"},
		{"keys:\n - {name: k, hash: secret}", "line 2: hash: write sha256: and the 64"},
		{"keys:\n - {name: k, hash: '" + hash + "'}\n - {name: l, hash: '" + hash + "'}",
			"line 3: hash: that is key k already"},
		{"keys:\n - {name: k, tier: gold, hash: '" + hash + "'}",
			`line 2: tier: no policy has a tier "gold"`},
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
		rules := Read(&r, n.Content[0])
		for _, l := range rules.Limits {
			if err := l.Check(); err != nil && len(r.Problems) == 0 {
				t.Errorf("%+v: %v", l, err)
			}
		}
	})
}
