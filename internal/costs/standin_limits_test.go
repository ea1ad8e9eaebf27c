package costs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/costs"
)

// selection returns a random selection set, in braces. It may contain scalars, objects, connections
// with literal or variable sizes, named fragments and inline fragments.
func selection(t *rapid.T, depth int) string {
	var b strings.Builder
	b.WriteString("{id")
	for range rapid.IntRange(0, 2).Draw(t, "fields") {
		size := rapid.SampledFrom([]string{"1", "3", "50", "100", "$n", "$d"}).Draw(t, "size")
		way := rapid.SampledFrom([]string{"first", "last"}).Draw(t, "way")
		below := "{id}"
		if depth > 0 {
			below = selection(t, depth-1)
		}
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			fmt.Fprintf(&b, " a%d:things(%s:%s,after:\"x}\"){nodes%s}", b.Len(), way, size, below)
		case 1:
			fmt.Fprintf(&b, " b%d:others(order:{by:NAME},%s:%s){edges{node%s}}", b.Len(), way, size,
				below)
		case 2:
			fmt.Fprintf(&b, " c%d:owner%s", b.Len(), below)
		case 3:
			fmt.Fprintf(&b, " ...on Thing @include(if:true)%s", below)
		case 4:
			b.WriteString(" ...F")
		}
	}
	return b.String() + "}"
}

// TestPointsAgree: the price list and the stand-in, which share only the parser and the formula,
// compute the same points for any query, and refuse the same queries.
func TestPointsAgree(t *testing.T) {
	j := judge(t, "github", "graphql=1000000000/1h", "graphql_points=1000000/1m")
	rapid.Check(t, func(t *rapid.T) {
		query := "query Q($n:Int,$d:Int=7)" + selection(t, 3) +
			" # a comment {\n fragment F on Thing{more(last:2){totalCount}}"
		body, _ := json.Marshal(map[string]any{"query": query,
			"variables": map[string]any{"n": 20}})
		r, quote, unpriced := j.ask("POST /graphql " + string(body))
		before := j.standin.Counts()
		listed := int64(0)
		if unpriced != nil {
			resp, err := http.DefaultTransport.RoundTrip(r)
			must(j.T, err)
			resp.Body.Close()
		} else {
			for _, c := range j.answer(r, quote).Costs {
				if c.Bucket == "graphql" {
					listed = c.Units
				}
			}
		}
		after := j.standin.Counts()
		if billed := after.Units["graphql"] - before.Units["graphql"]; billed != listed ||
			(unpriced == nil) != (after.Failed == before.Failed) {
			t.Errorf("the list books %d (%v), the stand-in bills %d: %s", listed, unpriced, billed, query)
		}
	})
}

// TestStandinsRefuse checks how each price list interprets its stand-in's refusals.
func TestStandinsRefuse(t *testing.T) {
	for _, test := range []struct {
		name, limit, request string
		times                int
		kind                 costs.Kind
		bucket               string
		window               bool
		until                string // a duration from now
	}{
		{"openai", "requests=1/1m", openAIChat, 2, costs.Throttled, "", false, "1m"},
		{"openai", "tokens=50/1m", openAIChat, 1, costs.Throttled, "", false, ""}, // never fits
		{"openai", "money=1/month", openAIChat, 1, costs.Exhausted, "money", true, ""},
		{"anthropic", "requests=1/1m", claude, 2, costs.Throttled, "", false, "1m"},
		{"anthropic", "money=1/month", claude, 1, costs.Exhausted, "money", true, ""},
		{"github", "core=1/1h", "GET /user", 2, costs.Exhausted, "core", false, "1h"},
		{"github", "points=1/1m", "GET /user", 2, costs.Throttled, "", false, "1m"},
		{"github", "search=1/1m", "GET /search/issues?q=a", 2, costs.Exhausted, "search", false, "1m"},
		{"github", "code_search=1/1m", "GET /search/code?q=a", 2, costs.Exhausted, "code_search",
			false, "1m"},
		{"github", "graphql=1/1h", `POST /graphql {"query":"{viewer{login}}"}`, 2, costs.Exhausted,
			"graphql", false, "1h"},
		{"shopify", "points=10/1m", shop, 2, costs.Throttled, "points", false, ""},
		{"google-analytics", "tokens=8/day", metrics, 2, costs.Exhausted, "tokens/core.1", true, ""},
		{"google-analytics", "tokens=8/1h", metrics, 2, costs.Throttled, "tokens/core.1", false, ""},
		{"google-maps", "requests=1/1m", "GET /v1/places/a", 2, costs.Throttled,
			"requests/maps.place-details", false, ""},
		{"x", "requests=1/15m", "GET /2/users/1", 2, costs.Exhausted, "requests/x.users.get", false,
			"15m"},
		{"x", "money=1/month", "GET /2/users/1", 1, costs.Exhausted, "money", true, ""},
		{"generic", "requests=1/1m", "GET /", 2, costs.Throttled, "", false, "1m"},
		{"gemini", "requests=1/1m", geminiContent, 2, costs.Throttled, "", false, ""},
		{"mistral", "requests=1/1m", mistralChat, 2, costs.Throttled, "", false, "1m"},
		{"mistral", "money=1/month", mistralChat, 1, costs.Exhausted, "money", true, ""},
		{"openrouter", "requests=1/1m", routerChat, 2, costs.Throttled, "", false, "1m"},
		{"openrouter", "money=1/month", routerChat, 1, costs.Exhausted, "money", true, ""},
		{"bedrock", "requests=1/1m", converse, 2, costs.Throttled, "", false, ""},
		{"slack", "tier2=1/1m", "GET /api/users.list", 2, costs.Throttled, "", false, "1m"},
		{"notion", "requests=1/1m", "GET /v1/users/me", 2, costs.Throttled, "", false, "1m"},
		{"reddit", "requests=1/10m", "GET /api/v1/me", 2, costs.Exhausted, "requests", false, "10m"},
	} {
		j := judge(t, test.name, test.limit)
		j.standin.Prices = map[string]float64{}
		if test.name != "x" && strings.HasPrefix(test.limit, "money") {
			j.standin.Prices["output"] = 1
		}
		var r *costs.Refusal
		for i := range test.times {
			r = j.send(test.request, "X-Goog-FieldMask: id").Refusal
			if i+1 < test.times && r != nil {
				t.Fatalf("%s: %+v", test.name, r)
			}
		}
		want := time.Duration(0)
		if test.until != "" {
			want, _ = time.ParseDuration(test.until)
		}
		now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
		until := time.Duration(0)
		if r != nil && !r.Until.IsZero() {
			until = r.Until.Time(now).Sub(now)
		}
		if r == nil || r.Kind != test.kind || r.Bucket != test.bucket || r.Window != test.window ||
			until != want {
			t.Errorf("%s %s: %+v, %v", test.name, test.limit, r, until)
		}
	}
}

// TestStandinsReport checks the remaining units that each response reports, and that nonsense is
// ignored.
func TestStandinsReport(t *testing.T) {
	for _, test := range []struct{ name, request, lessons string }{
		{"openai", openAIChat, "requests/gpt-5-mini 499 of 500, tokens/gpt-5-mini 199870 of 200000"},
		{"anthropic", claude,
			"requests/sonnet-4 49 of 50, input/sonnet-4 49977 of 50000, output/sonnet-4 9900 of 10000"},
		{"github", "GET /user", "core 4999 of 5000"},
		{"github", `POST /graphql {"query":"{viewer{login}}"}`, "graphql 4999 of 5000"},
		{"github", "GET /search/users?q=a", "search 29 of 30"},
		{"github", "GET /search/code?q=a", "code_search 9 of 10"},
		{"shopify", shop, "points 1995 of 2000"},
		{"google-analytics", metrics, "tokens/core.1 199995 of 0, " +
			"tokens/core.1 13995 of 0, server_errors/core.1 10 of 0"},
		{"google-maps", "GET /v1/places/a", ""},
		{"x", "GET /2/users/1", "requests/x.users.get 299 of 300"},
		{"generic", "GET /", "requests 99 of 100"},
		{"azure-openai", azureChat,
			"requests/gpt-5-mini 499 of 500, tokens/gpt-5-mini 199870 of 200000"},
		{"reddit", "GET /api/v1/me", "requests 999 of 0"},
	} {
		for _, fault := range []string{"", "no-headers", "minus-one", "nonsense"} {
			j := judge(t, test.name)
			if fault != "" {
				j.standin.Faults = []string{fault}
			}
			var all []string
			for _, l := range j.send(test.request, "X-Goog-FieldMask: id").Lessons {
				if l.Remaining >= 0 {
					all = append(all, fmt.Sprintf("%s %d of %d", l.Bucket, l.Remaining, l.Limit))
				}
			}
			want := test.lessons
			if fault != "" {
				want = ""
			}
			if got := strings.Join(all, ", "); got != want {
				t.Errorf("%s %s: %s, want %s", test.name, fault, got, want)
			}
		}
	}
}
