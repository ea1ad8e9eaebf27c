package costs_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// TestPricesOfRequests: what the shipped lists take for requests that are easy to price too low.
func TestPricesOfRequests(t *testing.T) {
	const deep = `query($n:Int=1){a(first:$n){b(first:$n){c(first:$n){id}}}}`
	graphql := func(more string) string { return fmt.Sprintf(`{"query":"%s"%s}`, deep, more) }
	for _, c := range []struct{ upstream, call, body, want string }{
		{"github", "POST /graphql", graphql(`,"variables":{"n":70}`),
			"graphql_points 1, graphql 50, concurrent 1"},
		{"github", "POST /graphql", graphql(`,"variables":"{\"n\":70}"`), "must be "},
		{"github", "POST /graphql", graphql(`,"variables":[{"n":70}]`), "must be "},
		{"github", "POST /graphql", graphql(`,"operationName":5`), "must be "},
		{"github", "POST /graphql", `{"query":"{a(first:5"}`,
			"github.graphql: the GraphQL query cannot be read"},
		{"github", "POST /graphql", `{}`, "cannot price github.graphql: its body has no query"},
		{"google-maps", "POST /directions/v2:computeRoutes", `{"routingPreference":2}`,
			"requests/maps.compute-routes 1, compute_routes/pro 1"},
		{"google-maps", "POST /directions/v2:computeRoutes", `{"travelMode":3}`,
			"requests/maps.compute-routes 1, compute_routes/enterprise 1"},
		{"google-maps", "POST /directions/v2:computeRoutes", `{"intermediates":{"a":1}}`,
			"what its price depends on is there in another form"},
		{"google-maps", "POST /directions/v2:computeRoutes", `{"origin":{"side_of_road":true}}`,
			"requests/maps.compute-routes 1, compute_routes/pro 1"},
		{"google-maps", "POST /directions/v2:computeRoutes", `{"travel_mode":"TWO_WHEELER"}`,
			"requests/maps.compute-routes 1, compute_routes/enterprise 1"},
		{"google-maps", "POST /directions/v2:computeRoutes", `{"optimize_waypoint_order":true}`,
			"requests/maps.compute-routes 1, compute_routes/pro 1"},
		{"google-maps", "POST /distanceMatrix/v2:computeRouteMatrix",
			`{"origins":[{}],"destinations":[{}],"extra_computations":["TOLLS"]}`,
			"compute_route_matrix/enterprise 1"},
		{"gemini", "POST /v1beta/models/gemini-2.5-flash:generateContent",
			`{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":9,"candidate_count":8}}`,
			", money 506"},
		{"gemini", "POST /v1beta/models/gemini-2.5-flash:generateContent",
			`{"tools":[{"google_search":{}}]}`, ", input/gemini-2.5-flash 1048576, "},

		{"x", "GET /2/users/search?query=a&max_results=1000", "",
			"requests/x.users.search 1, money 10000000"},
		{"x", "GET /2/users/reposts_of_me", "", "requests/x.posts.list 1, money 500000"},
		{"x", "GET /2/users/7/followers?max_results=1000", "",
			"requests/x.users.list 1, money 10000000"},
		{"x", "GET /2/users/7/followers?max_results=0", "", "money 1000000"},
		{"x", "GET /2/users/nobody", "", "cannot price x.users.get"},
		{"x", "GET /2/users/me", "", "requests/x.users.get 1, money 10000"},
		{"x", "GET /2/tweets/search", "", "cannot price x.tweets.get"},
		{"x", "POST /2/tweets", `{"text":"see example.com"}`,
			"requests/x.tweets.create 1, money 200000"},
		{"x", "POST /2/tweets", `{"text":"hi"}`,
			"requests/x.tweets.create 1, money 15000 to 200000"},

		{"openai", "POST /v1/completions", `{"model":"gpt-3.5-turbo-instruct",` +
			`"prompt":["a","b","c"],"max_tokens":1000}`, "tokens/gpt-3.5-turbo-instruct 4075, "},
		{"openrouter", "POST /api/v1/chat/completions", `{"model":"openai/gpt-4o-mini",` +
			`"models":["openai/o1-pro"],"max_tokens":1000}`, ", money 761250"},
		{"openai", "POST /v1/responses", `{"model":"gpt-4.1","max_output_tokens":16,` +
			`"input":[{"type":"item_reference","id":"msg_1"}]}`, " 1047592, "},
		{"openai", "POST /v1/responses", `{"model":"gpt-4.1","max_output_tokens":16,` +
			`"input":[{"content":[{"type":"input_file","file_data":"AAAA"}]}]}`, " 1047592, "},
		{"openai", "POST /v1/responses", `{"model":"gpt-4.1","max_output_tokens":16,` +
			`"input":[{"output":[{"image_url":"https://a"}]}]}`, " 1047592, "},
		{"anthropic", "POST /v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":1,` +
			`"messages":[{"content":[{"content":[{"source":{"url":"https://a"}}]}]}]}`,
			" 1000000, "},
		{"anthropic", "POST /v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":1,` +
			`"messages":[{"content":[{"source":{"data":"AAAA"}}]}]}`, " 6098, "},
		{"anthropic", "POST /v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":1,` +
			`"mcp_servers":[{}]}`, " 1000000, "},
	} {
		table := shipped(t, c.upstream)
		r := call(t, c.call, c.body)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Goog-FieldMask", "*")
		method, err := table.Method(r)
		var q costs.Quote
		if err == nil {
			body, failed := io.ReadAll(r.Body)
			must(t, failed)
			q, err = table.Quote(method, r, body, nil)
		}
		got := quoted(q.Costs)
		if err != nil {
			got = err.Error()
			if !errors.Is(err, quota.ErrUnpriced) {
				t.Errorf("%s: %v is not ErrUnpriced", c.call, err)
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s, want %s", c.call, c.body, got, c.want)
		}
	}
}
