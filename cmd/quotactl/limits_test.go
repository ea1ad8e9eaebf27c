package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/standin"
)

// change replaces a text in the configuration.
func (m *metered) change(old, text string) {
	m.Helper()
	config, err := os.ReadFile(m.config)
	must(m, err)
	if !strings.Contains(string(config), old) {
		m.Fatalf("%s: no %q", config, old)
	}
	must(m, os.WriteFile(m.config, []byte(strings.Replace(string(config), old, text, 1)), 0o600))
}

// TestLimitsImport: units are changed in place, missing limits are added, and all other text stays.
func TestLimitsImport(t *testing.T) {
	m, s := newBilled(t, "openai", `      # of the account
      - {bucket: money, units: 50000000, window: month, timezone: UTC}   # a comment
      - bucket: requests/gpt-5
        units: 500   # as in March
        window: 1m
        headroom: 20
      # behind them`)
	m.run(78, "limits import", "credential c1 has no project", "write project: ID into quota.yaml")
	m.change("    upstream: openai\n", "    upstream: openai\n    project: proj_1\n")
	s.Limits = map[string][]standin.Limit{"requests": {{Units: 60, Window: time.Minute}},
		"requests/gpt-5": {{Units: 700, Window: time.Minute}}, "tokens": {{Units: 9, Window: time.Minute}}}
	before, err := os.ReadFile(m.config)
	must(t, err)
	must(t, os.Chmod(m.config, 0o640))
	m.run(0, "limits import -o json",
		`{"bucket":"requests/gpt-5","window":"1m","timezone":null,"before":500,"after":700}`,
		`{"bucket":"tokens/gpt-5","window":"1m","timezone":null,"before":null,"after":9}`,
		`"written":false`)
	m.run(0, "limits import", "to change: 4; quotactl limits import --write does it")
	if text, _ := os.ReadFile(m.config); string(text) != string(before) {
		t.Errorf("it was changed:\n%s", text)
	}
	m.run(0, "limits import --write", "wrote 4 limits of c1 to "+m.config)
	text, err := os.ReadFile(m.config)
	must(t, err)
	want := strings.Replace(string(before), "units: 500   #", "units: 700   #", 1)
	want = strings.Replace(want, "        headroom: 20\n", "        headroom: 20\n"+
		"      - {bucket: tokens/gpt-5, units: 9, window: 1m}\n"+
		"      - {bucket: requests/gpt-standin, units: 60, window: 1m}\n"+
		"      - {bucket: tokens/gpt-standin, units: 9, window: 1m}\n", 1)
	if string(text) != want {
		t.Errorf("wrote:\n%s\nwant:\n%s", text, want)
	}
	if info, err := os.Stat(m.config); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	m.run(0, "limits import --write", "the 4 limits that the upstream reports are in force already")
	s.Limits = nil
	m.change("units: 700", "units: 900")
	m.change("headroom: 20", "headroom: 800")
	m.run(78, "limits import --write", "800 is more than the 700 units", "is left as it was")
	m.change("headroom: 800", "headroom: 20")
	must(t, os.WriteFile(m.config, []byte("credentials: [{name: c1, upstream: openai, project: p, "+
		"admin_key: {file: admin.key}}]\n"+string(before[strings.Index(string(before), "upstreams"):strings.Index(string(before), "credentials")])), 0o600))
	m.run(1, "limits import --write", "is not written with a key on each line")
}

// TestLimitsImportGitHub: a credential without limits gets the defaults with the account's own.
func TestLimitsImportGitHub(t *testing.T) {
	m, s := newBilled(t, "github", " REMOVED")
	m.change("    limits: REMOVED\n", "")
	s.Limits = map[string][]standin.Limit{"core": {{Units: 15_000, Window: time.Hour}}}
	m.run(0, "limits import", "core", "5000", "15000")
	m.run(0, "limits import --write", "wrote 1 limit of c1")
	m.run(0, "limits import", "are in force already")
	m.run(0, "config check -o json", `{"bucket":"core","units":15000,"headroom":0,"window":"anchored 1h"`,
		`"bucket":"writes","units":80`)
	if n := s.Counts().Units["core"]; n > 0 {
		t.Errorf("it took %d requests", n)
	}
}

// TestLimitsImportByUse: if only a call reports the limits, that call is charged.
func TestLimitsImportByUse(t *testing.T) {
	m, _ := newBilled(t, "shopify", `
      - {bucket: points, units: 1000, window: "restoring 50/1s"}`)
	m.run(0, "limits import --write", "1000", "2000")
	m.run(0, "config check -o json", `"units":2000,"headroom":0,"window":"restoring 100/1s"`)
	m.run(0, "log --by method", "shopify.graphql")

	m, s := newBilled(t, "google-analytics", " REMOVED")
	m.change("    limits: REMOVED\n", "    project: \"1234\"\n")
	s.Limits = map[string][]standin.Limit{"tokens": {{Units: 2_000_000, Calendar: "day"},
		{Units: 40_000, Window: time.Hour}, {Units: 14_000, Window: time.Hour}}}
	m.run(0, "limits import -o json", `"limits":[{"bucket":"tokens","window":"day",`+
		`"timezone":"America/Los_Angeles","before":200000,"after":2000000}],`)
	m.change("    project", "    limits: [{bucket: tokens, units: 9, window: 1h}]\n    project")
	m.run(64, "limits import", `bucket has no limit: "concurrent/core.1234"`)
	text, err := os.ReadFile(m.config)
	must(t, err)
	text = regexp.MustCompile(`127.0.0.1:\d+`).ReplaceAll(text, []byte("127.0.0.1:1"))
	must(t, os.WriteFile(m.config, text, 0o600))
	m.change("limits: [{bucket: tokens, units: 9, window: 1h}]", "")
	m.run(69, "limits import", "google-analytics cannot be reached")
}

// TestLimitsImportGoogle: a day with two limits is changed twice.
func TestLimitsImportGoogle(t *testing.T) {
	m := newMetered(t, "")
	m.SetLimit("default", 20_000)
	m.run(0, "limits import --write", "wrote 4 limits of key1")
	m.run(0, "config check -o json", `"bucket":"default","units":20000,"headroom":0,"window":"24h"`,
		`"bucket":"default","units":20000,"headroom":0,"window":"day"`)
	m.Cloud.Fault = "no-limits-role"
	m.run(77, "limits import", "--role roles/serviceusage.serviceUsageViewer")
	must(t, os.WriteFile(m.config, []byte("credentials: [{name: key1, upstream: anthropic}]"), 0o600))
	m.run(64, "limits import", "anthropic does not report this")
}
