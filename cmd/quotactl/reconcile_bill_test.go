package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/standin"
)

const adminKey = "sk-admin-0123456789"

// newBilled returns a stand-in of an API that reports its bills, and a configuration for it.
func newBilled(t *testing.T, name, limits string) (*metered, *standin.Server) {
	t.Helper()
	dir := t.TempDir()
	m := &metered{T: t, config: filepath.Join(dir, "quota.yaml"), ledger: "sqlite:ledger.db",
		secrets: []string{adminKey, "api-0123456789"}}
	s, err := standin.New(name)
	must(t, err)
	s.AdminKey = adminKey
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	m.url, m.key = server.URL, filepath.Join(dir, "admin.key")
	must(t, os.WriteFile(m.key, []byte(adminKey), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "api.key"), []byte("api-0123456789"), 0o600))
	must(t, os.WriteFile(m.config, fmt.Appendf(nil, `ledger: sqlite:///%s/ledger.db
upstreams: {%s: {endpoint: %q}}
credentials:
  - name: c1
    upstream: %[2]s
    api_key: {file: api.key}
    admin_key: {file: admin.key}
    limits:%[4]s
`, dir, name, server.URL, limits), 0o600))
	return m, s
}

const aMonth = `
      - {bucket: money, units: 50000000, window: month, timezone: UTC}`

// dayBefore returns a day in UTC, n days ago, and noon of it.
func dayBefore(n int) (day, noon string) {
	at := time.Now().UTC().AddDate(0, 0, -n)
	return at.Format(time.DateOnly), at.Format(time.DateOnly) + "T12:00:00Z"
}

// TestReconcileOpenAI: money by day and model, with the two newest days in three states.
func TestReconcileOpenAI(t *testing.T) {
	m, s := newBilled(t, "openai", aMonth)
	yesterday, noon := dayBefore(1)
	today, _ := dayBefore(0)
	m.run(0, "reconcile --lag 0s")
	m.run(0, "adjust --bucket money --units 1000 --reason test --at "+noon)
	s.Use(yesterday, "gpt-5-mini-2025-08-07", "money", 700)
	m.run(0, "spend --bucket money --units 100 --label priced=gpt-5-mini/auto")
	s.Use(today, "gpt-5-mini-2025-08-07", "money", 249.6)
	s.Use(today, "gpt-4o", "money", 50)
	earlier, before := dayBefore(2)
	m.run(0, "adjust --bucket money --units 10 --reason test --at "+before)
	s.Use(earlier, "gpt-4o", "money", 9.2)                              // rounded up by one call
	m.run(1, "reconcile -o json", `"verdict":"waiting","correction":0`, // six hours late
		`"settled":true,"ours":10,"theirs":9,"verdict":"agrees"`)
	m.run(1, "reconcile --lag 0s -o json",
		`"bucket":"money","metric":"","from":"`+yesterday+`T00:00:00.000000Z"`,
		`"settled":true,"ours":1000,"theirs":700,"verdict":"less","correction":-300`,
		`"settled":false,"ours":100,"theirs":300,"verdict":"more","correction":200`,
		`{"model":"gpt-5-mini","ours":100,"theirs":250},{"model":"gpt-4o","ours":0,"theirs":50}`)
	m.run(1, "reconcile --lag 0s", "openai counted more", "openai counted less",
		"gpt-5-mini: billed at 2.50 times what the ledger has",
		"gpt-4o: $0.000050 that no program has spent by the gate",
		"something else spends from openai's account")
	m.run(0, "reconcile --lag 0s --apply", "corrected")
	m.run(0, "reconcile --lag 0s -o json", `"ours":700,"theirs":700,"verdict":"agrees"`,
		`"ours":300,"theirs":300,"verdict":"agrees"`)
	m.run(0, "log", "openai counted 300 units and the ledger 100, from ", "taken_off=300")
	m.run(0, "ledger check")
	m.run(64, "reconcile --days 33", "must be from 1 to 31; entries are kept for 771h")
}

// TestReconcileAnthropic: money in cents, and tokens in the parts of their buckets by class.
func TestReconcileAnthropic(t *testing.T) {
	m, s := newBilled(t, "anthropic", aMonth+`
      - {bucket: input, units: 1000000, window: month, timezone: UTC}`)
	yesterday, noon := dayBefore(1)
	m.run(0, "adjust --bucket input/sonnet-4 --units 40 --reason test --at "+noon)
	s.Use(yesterday, "claude-sonnet-4-5-20250929", "uncached_input_tokens", 30)
	s.Use(yesterday, "claude-sonnet-4-5-20250929", "ephemeral_5m_input_tokens", 10)
	s.Use(yesterday, "claude-opus-4-1-20250805", "uncached_input_tokens", 5)
	s.Use(yesterday, "claude-opus-4-1-20250805", "money", 123456.7)
	m.run(1, "reconcile --lag 0s -o json",
		`"bucket":"input/sonnet-4","metric":"","from":"`+yesterday,
		`"ours":40,"theirs":40,"verdict":"agrees"`,
		`"bucket":"input/opus-4"`, `"ours":0,"theirs":5,"verdict":"more","correction":5`,
		`"ours":0,"theirs":123457,"verdict":"more","correction":123457`)
	m.run(0, "reconcile --lag 0s --apply")
	m.run(0, "reconcile --lag 0s")
}

// TestReconcileX: the posts are X's minimum bill, so a lower bill is no difference.
func TestReconcileX(t *testing.T) {
	m, s := newBilled(t, "x", aMonth)
	yesterday, noon := dayBefore(1)
	m.run(0, "adjust --bucket money --units 90000 --reason test --at "+noon)
	s.Use(yesterday, "", "posts", 10)
	m.run(0, "reconcile --lag 0s -o json", `"ours":90000,"theirs":50000,"verdict":"agrees"`)
	s.Use(yesterday, "", "posts", 10)
	m.run(1, "reconcile --lag 0s -o json",
		`"ours":90000,"theirs":100000,"verdict":"more","correction":10000`)
}

// TestReconcileGitHub: in windows in progress, other callers' requests are learned if the headers
// report them (one less, because only afterwards is the asking request known to be free), otherwise
// booked. A limit that differs is reported.
func TestReconcileGitHub(t *testing.T) {
	m, s := newBilled(t, "github", `
      - {bucket: core, units: 5000, window: anchored 1h}
      - {bucket: search, units: 20, window: anchored 1m}`)
	for range 3 {
		send(t, "GET", m.url+"/user", "")
	}
	send(t, "GET", m.url+"/search/issues", "")
	m.run(1, "reconcile -o json", `"bucket":"core"`, `"ours":2,"theirs":3,"verdict":"more"`,
		`"ours":0,"theirs":1,"verdict":"more","correction":1`,
		`{"bucket":"search","window":"anchored 1m","ours":20,"theirs":30}`)
	m.run(0, "reconcile --apply", "github allows 30 of search, and quota.yaml 20 (anchored 1m)")
	m.run(0, "reconcile")
	if n := s.Counts().Units["core"]; n != 3 {
		t.Errorf("asking took %d requests", n-3)
	}
}

// TestReconcileOpenRouter compares the day in progress with the key's spending, but not in its
// first minute.
func TestReconcileOpenRouter(t *testing.T) {
	m, s := newBilled(t, "openrouter", aMonth)
	server := redistest.Start(t, redistest.Options{Clock: true})
	text, err := os.ReadFile(m.config)
	must(t, err)
	_, rest, _ := strings.Cut(string(text), "\n")
	must(t, os.WriteFile(m.config, []byte("ledger: "+server.URL()+"\n"+rest), 0o600))
	midnight := time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC)
	s.Prices = map[string]float64{"output": 2}
	send(t, "POST", m.url+"/api/v1/chat/completions", `{"model": "openai/gpt-5", "messages": `+
		`[{"role": "user", "content": "[[output:250]]"}]}`)
	server.SetNow(t, midnight.Add(59*time.Second))
	m.run(0, "reconcile -o json", `"rows":[]`)
	server.SetNow(t, midnight.Add(time.Minute))
	m.run(1, "reconcile -o json", `"ours":0,"theirs":500,"verdict":"more","correction":500`)
	m.run(0, "reconcile --apply")
	m.run(0, "reconcile -o json", `"ours":500,"theirs":500,"verdict":"agrees"`)
}

// TestBillFails: each problem has its exit code and a hint, and no output contains the key.
func TestBillFails(t *testing.T) {
	m, _ := newBilled(t, "openai", aMonth)
	for _, c := range []struct {
		fault, want string
		code        int
	}{
		{"html", "openai answered 502", 69}, {"503", "openai answered 503", 69},
		{"401", "hint: credential c1: is its admin_key right? openai reports this to an admin key", 77},
		{"truncated", "openai: cannot parse its response", 1},
		{"bomb", "openai: its response is too long", 1},
	} {
		send(t, "POST", m.url+"/standin/settings", fmt.Sprintf(`{"faults": [%q]}`, c.fault))
		m.run(c.code, "reconcile", c.want)
	}
	send(t, "POST", m.url+"/standin/settings", `{"faults": []}`)
	must(t, os.WriteFile(m.key, []byte("sk-admin-wrong"), 0o600))
	m.secrets = append(m.secrets, "sk-admin-wrong")
	m.run(77, "reconcile", "openai answered 401")
	must(t, os.Remove(m.key))
	m.run(78, "reconcile", "admin key: file "+m.key+": no such file")
}

// send sends a request to a stand-in.
func send(t *testing.T, verb, url, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), verb, url, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Authorization", "Bearer api-0123456789")
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	must(t, answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", url, answer.Status)
	}
}

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
	m.run(0, "limits import", "to change: 4; run quotactl limits import --write")
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
	m.run(0, "limits import --write", "the 4 limits that the upstream reports are already in force")
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
	m.run(0, "limits import", "are already in force")
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
