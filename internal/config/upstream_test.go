package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quotabudget/internal/quota"
)

const two = `
upstreams: {anthropic: {endpoint: "http://127.0.0.1:9000"}}
credentials:
  - {name: y, api_key: {env: Y}}
  - name: a
    upstream: anthropic
    api_key: {env: A}
    limits:
      - {bucket: money, units: 50000000, window: day, timezone: UTC}
      - {bucket: output, units: 8000, window: 1m}
      - {bucket: output, units: 20000, window: 1m, across: all}
      - {bucket: output/opus-4, units: 500, window: 1m}
  - {name: b, upstream: anthropic, when_unreachable: {open: [anthropic.messages.create]}}
`

// TestUpstreams: each credential has the limits and the prices of its own upstream.
func TestUpstreams(t *testing.T) {
	cfg := load(t, two)
	y, a, b := cfg.Credentials[0], cfg.Credentials[1], cfg.Credentials[2]
	if y.Upstream != "youtube" || len(y.Limits) != 8 || cfg.Table(y) != cfg.Costs {
		t.Errorf("%+v", y)
	}
	if cfg.Ingest.Credential != "y" {
		t.Errorf("a sweep spends from %q", cfg.Ingest.Credential)
	}
	if cfg.Table(a).Upstream != "anthropic" || a.Limits[1].Across || !a.Limits[2].Across ||
		a.Limits[3].Bucket != "output/opus-4" {
		t.Errorf("%+v", a)
	}
	if len(b.Limits) != 0 {
		t.Errorf("what is not required is limited: %v", b.Limits)
	}
	budget := a.Budget(nil, cfg.Table(a), nil)
	if !budget.Unlimited || y.Budget(nil, cfg.Table(y), nil).Unlimited {
		t.Error("buckets without a limit are recorded for a alone")
	}
	if _, ok := budget.Prices["anthropic.messages.create"]; ok {
		t.Error("a price that depends on the call is fixed")
	}
	if got := budget.Prices["anthropic.models.list"]; len(got) != 1 ||
		got[0] != (quota.Cost{Bucket: "counting", Units: 1}) {
		t.Errorf("a fixed price is %v", got)
	}
	for upstream, want := range map[string]string{"anthropic": "http://127.0.0.1:9000/",
		"youtube": "https://youtube.googleapis.com/", "github": "https://api.github.com/", "none": ""} {
		if got := cfg.Endpoint(upstream); got != want {
			t.Errorf("%s is at %q, want %q", upstream, got, want)
		}
	}
	cfg = load(t, "upstreams: {youtube: {endpoint: 'http://localhost:1/'}}")
	if cfg.YouTube.Endpoint != "http://localhost:1/" {
		t.Errorf("youtube is at %s", cfg.YouTube.Endpoint)
	}
}

// TestRequiredBuckets: a list that requires some buckets keeps their limits, whatever is configured
// for others.
func TestRequiredBuckets(t *testing.T) {
	path := write(t, `costs: list.yaml
credentials:
  - {name: none}
  - {name: some, limits: [{bucket: b, units: 5, window: 1m}]}
  - {name: own, limits: [{bucket: a, units: 7, window: 1m}]}`)
	list := `hosts: [api.example.test]
sources: {page: {status: official, date: 2026-11, text: a page}}
buckets: {a: {required: true, limits: [{units: 3, window: 1h}], source: page}, b: {}}
methods: {x.y: {route: GET /y, cost: {a: 1, b: 1}, source: page}}`
	must(t, os.WriteFile(filepath.Join(filepath.Dir(path), "list.yaml"), []byte(list), 0o600))
	cfg, err := Load(t.Context(), path, env("HOME", "/h"))
	must(t, err)
	for i, want := range []string{"a 1h", "b 1m, a 1h", "a 1m"} {
		var names []string
		for _, l := range cfg.Credentials[i].Limits {
			names = append(names, l.Name())
		}
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("%s has %s, want %s", cfg.Credentials[i].Name, got, want)
		}
	}
}

// TestPricesInAFolder: a price list names the files beside it.
func TestPricesInAFolder(t *testing.T) {
	path := write(t, "costs: own/costs.yaml\ncredentials: [{name: k, upstream: two}]")
	own := filepath.Join(filepath.Dir(path), "own")
	must(t, os.CopyFS(filepath.Join(own, "costs"), os.DirFS("../../costs")))
	front := "default: one\nupstreams: {one: costs/youtube.yaml, two: costs/anthropic.yaml}"
	must(t, os.WriteFile(filepath.Join(own, "costs.yaml"), []byte(front), 0o600))
	cfg, err := Load(t.Context(), path, env("HOME", "/h"))
	must(t, err)
	if cfg.Costs.Upstream != "one" || cfg.Table(cfg.Credentials[0]).Upstream != "two" {
		t.Errorf("%s and %+v", cfg.Costs.Upstream, cfg.Credentials[0])
	}
}
