package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"quotabudget/internal/costs"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
)

// whole is a configuration with every section.
const whole = `ledger: redis://u:pw@h:6379/0
catalog: sqlite:catalog.db
costs: {profile: single-pool}
credentials:
  - name: key1
    api_key: {env: MY_KEY}
    pace: {curve: even, slack: 10%}
    limits: &l
      - {bucket: default, units: 10, headroom: 1, window: 24h}
      - {bucket: default, units: 10, window: day, timezone: America/Los_Angeles}
    when_unreachable: {open: [youtube.videos.list]}
  - {name: key2, api_key: {file: key}, mode: observe, limits: *l}
youtube: {endpoint: 'http://127.0.0.1:1/a'}
ingest:
  credential: key1
  regions: [US, GB, NO]
  pages: 4
  schedule: "0 */3 * * *"
  timezone: Europe/Berlin
  stagger: auto
  jobs: [{name: j, regions: [DE], schedule: '@every 90s', pages: 1}]
  weights: {US: 3}
  floors: {GB: 1}
  listen: "127.0.0.1:0"
jobs: [{name: own, command: [sh, 1], schedule: '@daily', cost: {bucket: default, units: 1}}]
serve:
  trusted_proxies: [10.0.0.0/8]
  limits: [{name: a, per: client, requests: 6, window: 1m, tiers: {gold: 60}, shards: 2}]
`

// FuzzLoad replaces a part of a configuration with a text. Load must not panic, print a key, or
// accept a configuration with which the programs could not run.
func FuzzLoad(f *testing.F) {
	for _, seed := range []struct{ at, cut, text string }{
		{"redis:", "redis", "\""},
		{"pw", "", canary},
		{"10,", "10", "0"},
		{"24h", "24h", "1ms"},
		{"24h", "24h", "366d"},
		{"*l", "*l", "*k"},
		{"127.0.0.1:1", "127.0.0.1:1", "h"},
		{"[US", "[US, GB, NO]", "[]"},
		{"*/3", "*/3", "@"},
		{"[DE]", "", "&a [*a]"},
		{"6, window", "6", "[]"},
	} {
		f.Add(uint16(strings.Index(whole, seed.at)), uint16(len(seed.cut)), seed.text)
	}
	f.Add(uint16(0), uint16(len(whole)), "")
	f.Add(uint16(0), uint16(len(whole)), "%s: a\n---\n? [a]: \x00")
	f.Fuzz(func(t *testing.T, at, cut uint16, text string) {
		from := min(int(at), len(whole))
		data := whole[:from] + text + whole[min(from+int(cut), len(whole)):]
		s := Search{Getenv: env("HOME", "/h"), Path: "quota.yaml", Text: []byte(data)}
		cfg, err := s.Load(t.Context())
		if err == nil {
			runnable(t, cfg)
			return
		}
		var problem *Error
		if !errors.As(err, &problem) || len(problem.Problems) == 0 ||
			len(problem.Problems) > grammar.MaxProblems+2 || quota.LooksSecret(err.Error()) {
			t.Errorf("%.1000v", err)
		}
	})
}

// runnable checks the properties of a configuration that the programs rely on.
func runnable(t *testing.T, cfg *Config) {
	t.Helper()
	names := map[string]bool{}
	for _, c := range cfg.Credentials {
		if c.Name == "" || names[c.Name] || len(c.Limits) == 0 {
			t.Errorf("credential %+v", c)
		}
		names[c.Name] = true
		for _, l := range c.Limits {
			if l.Headroom < 0 || l.Headroom > l.Units || l.Window.Longest() <= 0 || l.Bucket == "" {
				t.Errorf("limit %+v", l)
			}
		}
		if b := c.Budget(nil, cfg.Costs, nil); len(b.Buckets()) == 0 {
			t.Error("no bucket")
		}
	}
	if _, err := costs.ParseEndpoint(cfg.YouTube.Endpoint); err != nil {
		t.Error(cfg.YouTube.Endpoint, err)
	}
	for _, l := range cfg.Serve.Limits {
		if err := l.Check(); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	lanes, err := cfg.Lanes()
	if err != nil || len(lanes) == 0 {
		t.Fatal(err)
	}
	for _, l := range lanes {
		if l.Pages < 1 || l.Zone == nil || l.Region == "" || l.Offset < 0 {
			t.Errorf("lane %+v", l)
		}
	}
}

// lines returns head, followed by the format for each number from 1 to n.
func lines(head, format string, n int) string {
	var b strings.Builder
	b.WriteString(head)
	for i := range n {
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}

// TestLargeFiles: the time to read a file is proportional to its size. If it grew with the square
// of the size, files near the maximum would take minutes.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	cfg := load(t, lines("credentials:\n- name: default\n  limits:\n",
		"  - {bucket: default, units: 1, window: %dms}\n", 20_000))
	if n := len(cfg.Credentials[0].Limits); n != 20_000 {
		t.Errorf("%d limits", n)
	}
	cfg = load(t, lines("ingest: {credential: c1}\ncredentials:\n", "- {name: c%d}\n", 20_000))
	if n := len(cfg.Credentials); n != 20_000 {
		t.Errorf("%d credentials", n)
	}
}

// TestManyProblems: the first of many problems are reported, and the rest of the file is not
// checked.
func TestManyProblems(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"jobs":             lines("ingest:\n  jobs:\n", "  - {name: j%d, regions: [US]}\n", 10_000),
		"jobs of one name": lines("ingest:\n  jobs:\n", "  - {name: j, pages: %d}\n", 10_000),
		"limits": lines("credentials:\n- name: a\n  limits:\n",
			"  - {bucket: default, units: %d, window: 1h}\n", 10_000),
		"buckets": lines("credentials:\n- name: a\n  limits:\n",
			"  - {bucket: defualt%d, units: 1, window: 1h}\n", 10_000),
		"methods": lines("credentials:\n- name: a\n  when_unreachable:\n    open:\n",
			"    - youtube.video.list%d\n", 10_000),
		"keys":    lines("ledger: sqlite:a\n", "key%d: 1\n", 10_000),
		"regions": lines("ingest:\n  regions:\n", "  - x%d\n", 10_000),
		"aliases": lines("credentials:\n- name: a0\n  limits: &l\n",
			"  - {bucket: default, units: 1, window: %dms}\n", 10_000) +
			lines("", "- {name: a%d, limits: *l}\n", 10_000),
	} {
		_, err := Load(t.Context(), write(t, text), env("HOME", "/h"))
		var problem *Error
		if !errors.As(err, &problem) || len(problem.Problems) > grammar.MaxProblems+2 {
			t.Errorf("%s: %.200v", name, err)
			continue
		}
		if last := problem.Problems[len(problem.Problems)-1].Text; name == "aliases" &&
			!strings.Contains(last, "more than 200000 items") ||
			name != "aliases" && last != "and more: only the first 100 problems are listed" {
			t.Errorf("%s: %s", name, last)
		}
	}
}
