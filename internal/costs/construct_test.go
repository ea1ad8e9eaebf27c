package costs_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
)

// constructs is a price list with a place for a method, and for the sections after it.
const constructs = `hosts: [api.example.test]
credential: bearer
sources: {page: {status: official, date: 2026-11, text: a test}}
buckets:
  requests: {unit: requests, required: true, source: page, limits: [{units: 100, window: 1h}]}
  tokens: {unit: tokens}
methods:
  x.ask: {route: POST /ask, source: page, take: {requests: 1}, hold: {tokens: 100}, settle: {tokens: %s}}
%s`

// TestConstructs has a row for each construct that a real API needs.
func TestConstructs(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	const used = "usage.total"
	learn := func(text string) string { return "learn: [{bucket: requests, source: page, " + text + "}]\n" }
	for _, c := range []struct {
		name, settle, list, path, headers, body string
		status                                  int
		want                                    string // tokens, lessons, refusal
	}{
		{"remaining as an expression", used, learn(`remaining: '100 - int(header("x-used"))'`), "/ask",
			"X-Used: 40", `{"usage":{"total":7}}`, 200, "7; 60 of 0"},
		{"used of a limit", used, learn("used: x-used, limit: x-limit"), "/ask",
			"X-Used: 40|X-Limit: 50", `{"usage":{"total":7}}`, 200, "7; 10 of 50"},
		{"used/limit", used, learn("used: x-calls, limit: x-calls"), "/ask",
			"X-Calls: 32/40", `{"usage":{"total":7}}`, 200, "7; 8 of 40"},
		{"IETF RateLimit", used, learn("remaining: ratelimit, limit: ratelimit-policy, " +
			"reset: {header: ratelimit, as: seconds}"), "/ask",
			`RateLimit: "day";r=50;t=30|RateLimit-Policy: "day";q=100;w=86400`,
			`{"usage":{"total":7}}`, 200, "7; 50 of 100 30s"},
		{"an epoch in milliseconds", used, learn("remaining: x-left, reset: {header: x-reset, as: epoch}"),
			"/ask", "X-Left: 5|X-Reset: 1795780860000", `{"usage":{"total":7}}`, 200, "7; 5 of 0 1m0s"},
		{"an absent field that means 0", used, "zeros: [usage.total]\n", "/ask", "", `{"usage":{}}`, 200, "0;"},
		{"usage in a list", used, "", "/ask", "", `[{"a":1},{"usage":{"total":7}}]`, 200, "7;"},
		{"usage in NDJSON", used, "", "/ask", "Content-Type: application/x-ndjson",
			"{\"usage\":{\"total\":1}}\n{\"usage\":{\"total\":7}}\n", 200, "7;"},
		{"until within a list", used, "refusals: [{status: 429, kind: throttled, source: page, " +
			"until: {path: error.details.*.delay, as: duration}}]\n", "/ask", "",
			`{"error":{"details":[{"a":1},{"delay":"34s"}]}}`, 429, "100; throttled 34s"},
		{"reasons at the top level", used, "errors: {reasons: [{name: code}]}\nrefusals: [{status: 429, " +
			"where: says(\"spent\"), kind: exhausted, bucket: requests, source: page, until: 1m}]\n",
			"/ask", "", `{"code":"spent"}`, 429, "100; exhausted 1m0s"},
		{"a path that ends in a slash", used, "", "/ask/", "", `{"usage":{"total":7}}`, 200, "7;"},
	} {
		table, err := costs.Parse([]byte(fmt.Sprintf(constructs, c.settle, c.list)))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		r, err := http.NewRequest("POST", "https://api.example.test"+c.path, nil)
		must(t, err)
		method, err := table.Method(r)
		must(t, err)
		quote, err := table.Quote(method, r, nil, nil)
		must(t, err)
		h := http.Header{"Content-Type": {"application/json"}}
		for _, line := range strings.Split(c.headers, "|") {
			name, value, _ := strings.Cut(line, ": ")
			h.Set(name, value)
		}
		observed := quote.Observe(c.status, h)
		_, err = observed.Write([]byte(c.body))
		must(t, err)
		out := observed.Close()
		got := fmt.Sprintf("%d;", out.Costs[1].Units)
		for _, l := range out.Lessons {
			got += fmt.Sprintf(" %d of %d", l.Remaining, l.Limit)
			if !l.Reset.IsZero() {
				got += " " + l.Reset.Time(now).Sub(now).String()
			}
		}
		if of := out.Refusal; of != nil {
			got += " " + string(of.Kind) + " " + of.Until.Time(now).Sub(now).String()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s; unread %v, missing %v", c.name, got, c.want, out.Unread, out.Missing)
		}
	}
}
