package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	m.key = filepath.Join(dir, "admin.key")
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
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	for range 3 {
		send(t, "GET", server.URL+"/user", "")
	}
	send(t, "GET", server.URL+"/search/issues", "")
	m.run(1, "reconcile -o json", `"bucket":"core"`, `"ours":2,"theirs":3,"verdict":"more"`,
		`"ours":0,"theirs":1,"verdict":"more","correction":1`,
		`{"bucket":"search","window":"anchored 1m","ours":20,"theirs":30}`)
	m.run(0, "reconcile --apply", "github allows 30 of search, and quota.yaml 20 (anchored 1m)")
	m.run(0, "reconcile")
	if n := s.Counts().Units["core"]; n != 3 {
		t.Errorf("asking took %d requests", n-3)
	}
}

// TestReconcileOpenRouter compares the day in progress with the key's spending.
func TestReconcileOpenRouter(t *testing.T) {
	m, s := newBilled(t, "openrouter", aMonth)
	s.Prices = map[string]float64{"output": 2}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	m.run(0, "reconcile")
	send(t, "POST", server.URL+"/api/v1/chat/completions", `{"model": "openai/gpt-5", "messages": `+
		`[{"role": "user", "content": "[[output:250]]"}]}`)
	m.run(1, "reconcile -o json", `"ours":0,"theirs":500,"verdict":"more","correction":500`)
	m.run(0, "reconcile --apply")
	m.run(0, "reconcile -o json", `"ours":500,"theirs":500,"verdict":"agrees"`)
}

// TestBillFails: each problem has its exit code and a hint, and no output contains the key.
func TestBillFails(t *testing.T) {
	m, s := newBilled(t, "openai", aMonth)
	faults := httptest.NewServer(s)
	t.Cleanup(faults.Close)
	for _, c := range []struct {
		fault, want string
		code        int
	}{
		{"html", "a web page came in place of", 69}, {"503", "openai answered 503", 69},
		{"401", "hint: credential c1: is its admin_key right? openai reports this to an admin key", 77},
		{"truncated", "openai: cannot parse its response", 1},
		{"bomb", "openai: its response is too long", 1},
	} {
		send(t, "POST", faults.URL+"/standin/settings", fmt.Sprintf(`{"faults": [%q]}`, c.fault))
		want := c.want
		if c.fault == "html" {
			want = "openai answered 502"
		}
		m.run(c.code, "reconcile", want)
	}
	send(t, "POST", faults.URL+"/standin/settings", `{"faults": []}`)
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
