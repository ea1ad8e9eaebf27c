package costs_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/standin"
)

// judged is a stand-in, with the units that its price list books for the same requests.
type judged struct {
	*testing.T
	standin *standin.Server
	table   *costs.Table
	url     string
	took    map[string]int64 // booked units by bucket
	etag    string           // of the last response
}

func judge(t *testing.T, name string, limits ...string) *judged {
	t.Helper()
	s, err := standin.New(name)
	must(t, err)
	s.Now = func() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }
	s.Limits, err = standin.ParseLimits(limits...)
	must(t, err)
	must(t, s.Check())
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	table := shipped(t, name)
	return &judged{t, s, table, web.URL, map[string]int64{}, ""}
}

// send sends "VERB path body" with a credential, and returns the list's outcome. In a header, ETAG
// stands for the ETag of the last response.
func (j *judged) send(request string, headers ...string) costs.Outcome {
	j.Helper()
	r, quote, err := j.ask(request, headers...)
	must(j.T, err)
	return j.answer(r, quote)
}

// ask returns a request, and its quote by the list.
func (j *judged) ask(request string, headers ...string) (*http.Request, costs.Quote, error) {
	j.Helper()
	verb, rest, _ := strings.Cut(request, " ")
	path, body, _ := strings.Cut(rest, " ")
	r, err := http.NewRequestWithContext(j.Context(), verb, j.url+path, strings.NewReader(body))
	must(j.T, err)
	at := j.table.Credential
	r.Header.Set(at.Header, at.Prefix+"key")
	for _, h := range append(headers, "Anthropic-Version: 2023-06-01", "Accept-Encoding: gzip") {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, strings.ReplaceAll(value, "ETAG", j.etag))
	}
	method, err := j.table.Method(r)
	must(j.T, err)
	quote, err := j.table.Quote(method, r, []byte(body), nil)
	return r, quote, err
}

// answer sends the request, and returns the list's outcome of the response.
func (j *judged) answer(r *http.Request, quote costs.Quote) costs.Outcome {
	j.Helper()
	resp, err := http.DefaultTransport.RoundTrip(r)
	must(j.T, err)
	defer resp.Body.Close()
	j.etag = resp.Header.Get("Etag")
	answer := io.Reader(resp.Body)
	if resp.Header.Get("Content-Encoding") == "gzip" {
		answer, err = gzip.NewReader(answer)
		must(j.T, err)
	}
	observed := quote.Observe(resp.StatusCode, resp.Header)
	_, _ = io.Copy(observed, answer) // the response may be cut off
	out := observed.Close()
	for i, c := range out.Costs {
		j.took[c.Bucket] += c.Units
		if held := quote.Costs[i]; c.Units > max(held.Units, held.Most) {
			j.Errorf("%s took %d of %s, and could take %d at most", r.URL.Path, c.Units, c.Bucket,
				max(held.Units, held.Most))
		}
	}
	return out
}

// agree checks that the list has booked the units that the stand-in billed, plus over.
func (j *judged) agree(over string) {
	j.Helper()
	billed := j.standin.Counts().Units
	for _, more := range strings.Fields(over) {
		bucket, units, _ := strings.Cut(more, "=")
		var n int64
		if _, err := fmt.Sscan(units, &n); err != nil {
			j.Fatal(err)
		}
		billed[bucket] += n
	}
	maps.DeleteFunc(j.took, func(_ string, units int64) bool { return units == 0 })
	if !maps.Equal(j.took, billed) {
		j.Errorf("%s: the list says\n%v, the stand-in and %q say\n%v", j.table.Upstream, j.took,
			over, billed)
	}
}

const (
	openAIChat = `POST /v1/chat/completions {"model":"gpt-5-mini","messages":[{"role":"user",` +
		`"content":"[[output:40]][[cached:9]]"}],"max_completion_tokens":100}`
	openAIResponse = `POST /v1/responses {"model":"gpt-5-mini","input":"[[output:40]]"}`
	claude         = `POST /v1/messages {"model":"claude-sonnet-4-5","messages":[{"role":"user",` +
		`"content":"[[output:40]][[cached:9]][[written:4]]"}],"max_tokens":100}`
	searching = `POST /v1/messages {"model":"claude-sonnet-4-5","messages":[{"role":"user",` +
		`"content":"[[output:40]][[search:2]]"}],"max_tokens":100}`
	includeUsage  = `"stream_options":{"include_usage":true}`
	webSearch     = `"user":"[[search:3]]","tools":[{"type":"web_search"}]`
	geminiContent = `POST /v1beta/models/gemini-2.5-flash:generateContent {"contents":[{"parts":[` +
		`{"text":"[[output:40]][[cached:9]][[reasoning:3]]"}]}]}`
	geminiStream = `POST /v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse ` +
		`{"contents":[{"parts":[{"text":"[[output:40]][[cached:9]][[reasoning:3]]"}]}]}`
	azureChat = `POST /openai/deployments/gpt-5-mini/chat/completions?api-version=2025-01-01 {` +
		`"model":"gpt-5-mini","messages":[{"role":"user","content":"[[output:40]][[cached:9]]"}],` +
		`"max_completion_tokens":100}`
	mistralChat = `POST /v1/chat/completions {"model":"mistral-large-latest","messages":[{` +
		`"role":"user","content":"[[output:40]]"}],"max_tokens":100}`
	routerChat = `POST /api/v1/chat/completions {"model":"openai/gpt-4o","messages":[{` +
		`"role":"user","content":"[[output:40]]"}],"max_tokens":100}`
	converse = `POST /model/anthropic.claude-opus-4-6-v1/converse {"messages":[{"role":"user",` +
		`"content":[{"text":"[[output:40]][[cached:9]][[written:4]]"}]}],` +
		`"inferenceConfig":{"maxTokens":100}}`
	shop    = `POST /admin/api/2026-01/graphql.json {"query":"{products(first:5){edges{node{id}}}}"}`
	metrics = `POST /v1beta/properties/1:runReport {"metrics":[{"name":"users"}],` +
		`"returnPropertyQuota":true}`
	places = `POST /v1/places:searchText {"textQuery":"bakery"}`
	route  = `POST /directions/v2:computeRoutes `
)

func withStream(request string) string { return with(request, `"stream":true`) }

// with adds fields to the object at the end of the request.
func with(request, fields string) string {
	return strings.TrimSuffix(request, "}") + "," + fields + "}"
}

// TestStandinsAgree: each list books exactly the units that its stand-in bills. In a row, over has
// the units that a list books beyond that, because the usage is uncertain.
func TestStandinsAgree(t *testing.T) {
	for _, test := range []struct {
		name, limits, faults string
		prices               map[string]float64
		requests             []string // headers follow after " | "
		over                 string
	}{
		{name: "openai",
			prices: map[string]float64{"input": 0.25, "cached": 0.025, "output": 2},
			requests: []string{openAIChat, openAIResponse, withStream(openAIResponse),
				strings.TrimSuffix(openAIChat, "}") + `,"n":3}`,
				with(withStream(openAIChat), includeUsage), "GET /v1/models", "GET /v1/files",
				`POST /v1/moderations {"input":"a"}`, "GET /v1/responses/none",
				`POST /v1/responses/input_tokens {"input":"a"}`}, over: "free=1"},
		{name: "openai", // tiers of processing, reasoning, tools
			prices: map[string]float64{"input": 0.25, "cached": 0.025, "output": 2,
				"search": 10000},
			requests: []string{with(openAIChat, `"service_tier":"flex"`),
				with(openAIChat, `"service_tier":"auto"`),
				with(withStream(openAIChat), `"service_tier":"priority",`+includeUsage),
				with(openAIResponse, `"service_tier":"priority","user":"[[reasoning:30]]"`),
				with(withStream(openAIResponse), `"service_tier":"flex"`),
				with(openAIResponse, webSearch), with(withStream(openAIResponse), webSearch)}},
		{name: "openai", limits: "tokens=100/1m", faults: "500@1 spend@3",
			requests: []string{openAIChat, openAIChat, openAIChat, openAIChat}},
		// the maximum is booked for a stream without usage, which the client did not request
		{name: "openai", over: "tokens/gpt-5-mini=1158 money=483", requests: []string{
			withStream(openAIChat)}},
		{name: "openai", prices: map[string]float64{"input": 150},
			requests: []string{`POST /v1/embeddings {"model":"some","input":"abc"}`}},

		{name: "anthropic", limits: "output=200/1m", faults: "529@4",
			prices: map[string]float64{"input": 3, "written": 3.75, "cached": 0.3, "output": 15},
			requests: []string{claude, withStream(claude), claude, claude, claude,
				strings.Replace(claude, "claude-sonnet-4-5", "claude-sonnet-4", 1)}},
		{name: "anthropic", // a model for which cached reads count
			prices: map[string]float64{"input": 0.8, "written": 1, "cached": 0.08, "output": 4},
			requests: []string{
				strings.Replace(claude, "claude-sonnet-4-5", "claude-3-5-haiku-20241022", 1)}},

		{name: "anthropic", // web searches, also with a model that does not support them
			prices: map[string]float64{"input": 3, "output": 15, "search": 10000},
			requests: []string{
				with(searching, `"tools":[{"type":"web_search_20250305"}]`), searching,
				with(withStream(searching),
					`"tools":[{"type":"web_search_20250305","max_uses":3}]`)}},
		// whether a request with an invalid key counts is not published
		{name: "anthropic", faults: "401@1", over: "requests/sonnet-4=1", requests: []string{claude}},

		{name: "github", requests: []string{"GET /repos/o/r",
			"GET /repos/o/r | If-None-Match: ETAG", "POST /repos/o/r/issues {}",
			"GET /missing", "GET /rate_limit", "DELETE /repos/o/r",
			"GET /search/issues?q=a", "GET /search/code?q=a", "HEAD /search/users",
			"GET /repos/o/r/labels/good%20first%20issue", "GET /repos/o/r/contents/%C3%A9t%C3%A9/",
			`POST /graphql {"query":"{viewer{login}}"}`,
			`POST /graphql {"query":"{rateLimit{cost} a(first:100){nodes{b(first:60){nodes{` +
				`c(first:9){totalCount}}}}}}"}`,
			`POST /graphql {"query":"query($n:Int=50){a(first:$n){nodes{...F}}} fragment F on T{` +
				`b(last:$m){nodes{id}}}","variables":{"m":10}}`,
			`POST /graphql {"query":"mutation{addStar(input:{id:1}){clientMutationId}}"}`,
			// queries that a naive parser would price too low
			`POST /graphql {"query":"#\nmutation{addStar(input:{id:1}){clientMutationId}}"}`,
			`POST /graphql {"query":",fragment F on T{id} mutation{addStar(input:{id:1}){...F}}"}`,
			`POST /graphql {"query":"query A{viewer{id}} mutation B{addStar(input:{id:1}){id}}",` +
				`"operationName":"B"}`,
			`POST /graphql {"query":"{rateLimit:x(first:1){cost:totalCount} a(first:100){nodes{` +
				`b(first:60){nodes{c(first:9){totalCount}}}}}}"}`}},
		{name: "github", limits: "core=1/1h graphql=1/1h", over: "core=1 points=1 graphql=1 " +
			"graphql_points=1", requests: []string{"GET /user", "GET /user",
			`POST /graphql {"query":"{viewer{login}}"}`, `POST /graphql {"query":"{viewer{login}}"}`}},

		{name: "shopify", limits: "points=20/1m", requests: []string{shop, shop, shop, shop,
			strings.Replace(shop, "first:5", "first:999", 1)}},
		{name: "shopify", faults: "no-usage@1 500@2", over: "points=995",
			requests: []string{shop, shop}},

		{name: "google-analytics", limits: "tokens=20/day",
			requests: []string{metrics, strings.Replace(metrics, "users", "views", 1), metrics,
				metrics, metrics, `POST /v1beta/properties/1:runReport {}`}},
		{name: "google-analytics", limits: "tokens=20/day", // of each property and category
			requests: []string{metrics, metrics, strings.Replace(metrics, "/1:", "/2:", 1),
				strings.Replace(metrics, "runReport", "runRealtimeReport", 1),
				strings.Replace(metrics, "v1beta/properties/1:runReport",
					"v1alpha/properties/1:runFunnelReport", 1),
				`POST /v1alpha/properties/1:chat {"userQuery":"how many users?"}`,
				`POST /v1alpha/properties/1:chat {"userQuery":""}`}},
		{name: "google-analytics", requests: []string{`POST /v1beta/properties/1:batchRunReports {` +
			`"requests":[{"metrics":[{}],"returnPropertyQuota":true},{"metrics":[{},{}],` +
			`"returnPropertyQuota":true}]}`}},
		{name: "google-analytics", faults: "503@1", over: "tokens/core.1=100", requests: []string{metrics}},

		{name: "google-maps", requests: []string{places + " | X-Goog-FieldMask: places.id",
			places + " | X-Goog-FieldMask: places.id,places.location.latitude",
			places + " | X-Goog-FieldMask: places.id, places.rating",
			places + " | X-Goog-FieldMask: places.id | X-Goog-FieldMask: places.rating",
			places + " | X-Goog-FieldMask: *",
			places + " | X-Goog-FieldMask: places.reviews,places.displayName.text",
			places + " | X-Goog-FieldMask: places.reviews.places.id",
			"GET /v1/places/a | X-Goog-FieldMask: reviews.places.id",
			"GET /v1/places/a | X-Goog-FieldMask: id", "GET /v1/places/a | X-Goog-FieldMask: types",
			"GET /v1/places/a | X-Goog-FieldMask: displayName.text,id",
			`POST /v1/places:searchNearby {} | X-Goog-FieldMask: places.id`,
			"GET /v1/places/a?fields=rating | X-Goog-FieldMask: id",
			route + `{} | X-Goog-FieldMask: *`,
			route + `{"routingPreference":"TRAFFIC_AWARE_OPTIMAL"} | ` +
				`X-Goog-FieldMask: routes.duration`,
			route + `{"intermediates":[{},{},{},{},{},{},{},{},{},{}]} | X-Goog-FieldMask: *`,
			route + `{"intermediates":[{},{},{},{},{},{},{},{},{},{},{}]} | X-Goog-FieldMask: *`,
			route + `{"optimizeWaypointOrder":true} | X-Goog-FieldMask: *`,
			route + `{"origin":{"location":{"heading":0}}} | X-Goog-FieldMask: *`,
			route + `{"intermediates":[{},{"sideOfRoad":true}]} | X-Goog-FieldMask: *`,
			route + `{"travelMode":"TWO_WHEELER"} | X-Goog-FieldMask: *`,
			route + `{"extraComputations":["TOLLS"]} | X-Goog-FieldMask: *`,
			route + `{"extraComputations":["HTML_FORMATTED_NAVIGATION_INSTRUCTIONS"]} | ` +
				`X-Goog-FieldMask: *`,
			`POST /distanceMatrix/v2:computeRouteMatrix {"origins":[{},` +
				`{"waypoint":{"vehicleStopover":true}}],"destinations":[{}]} | X-Goog-FieldMask: *`,
			`POST /distanceMatrix/v2:computeRouteMatrix {"origins":[{}],"destinations":[{}],` +
				`"travelMode":"TWO_WHEELER"} | X-Goog-FieldMask: *`,
			`POST /distanceMatrix/v2:computeRouteMatrix {"origins":[{},{}],` +
				`"destinations":[{},{},{}]} | X-Goog-FieldMask: *`}},
		{name: "google-maps", limits: "requests=1/1m", over: "requests/maps.text-search=1",
			requests: []string{places + " | X-Goog-FieldMask: *",
				places + " | X-Goog-FieldMask: *"}},

		{name: "x", requests: []string{"GET /2/tweets/1", "GET /2/tweets?ids=2,3&expansions=author_id",
			"GET /2/tweets/search/recent?query=a&max_results=100&expansions=author_id",
			"GET /2/users/4", "GET /2/users?ids=5,6", "GET /2/users/by/username/jo",
			"GET /2/users/7/tweets", "GET /2/users/7/followers", "GET /2/users/7/liked_tweets",
			`POST /2/users/7/likes {"tweet_id":"1"}`, "DELETE /2/tweets/1", `POST /2/tweets {"text":"hi"}`,
			`POST /2/tweets {"text":"see https://example.com"}`}},
		{name: "x", requests: []string{"GET /2/tweets/1", "GET /2/tweets/1",
			"GET /2/users/1", "GET /2/tweets?ids=1,2,2&expansions=author_id",
			"GET /2/users?ids=92,91,90"}},
		{name: "x", limits: "requests=1/15m", over: "requests/x.tweets.get=1",
			requests: []string{"GET /2/tweets/1", "GET /2/tweets/2"}},

		{name: "generic", requests: []string{"GET /a?cost=7", "POST /b {}", "GET /missing/c",
			"GET /a?cost=-1"}},
		{name: "generic", limits: "requests=1/1m", over: "requests=1",
			requests: []string{"GET /a", "GET /a"}},
		{name: "generic", faults: "no-usage@1 503@2", over: "units=9",
			requests: []string{"GET /a", "GET /a"}},
		// the other model APIs, and a response that does not report its usage
		{name: "gemini", prices: map[string]float64{"input": 0.3, "cached": 0.03, "output": 2.5},
			requests: []string{geminiContent, geminiStream, "GET /v1beta/models",
				strings.Replace(geminiStream, "?alt=sse", "", 1)}},
		{name: "mistral", prices: map[string]float64{"input": 0.5, "cached": 0.5, "output": 1.5},
			requests: []string{mistralChat, mistralChat}},
		{name: "mistral", faults: "no-usage@1", over: "tokens/mistral-large-latest=1138 money=629",
			prices:   map[string]float64{"input": 0.5, "cached": 0.5, "output": 1.5},
			requests: []string{mistralChat}},
		{name: "openrouter", prices: map[string]float64{"input": 2.5, "cached": 1.25, "output": 10},
			requests: []string{routerChat, with(withStream(routerChat), includeUsage),
				"GET /api/v1/key", "GET /api/v1/models"}},
		{name: "azure-openai", prices: map[string]float64{"input": 0.25, "cached": 0.025, "output": 2},
			requests: []string{azureChat}},
		{name: "bedrock", prices: map[string]float64{"input": 5, "cached": 0.5, "written": 6.25,
			"output": 25}, requests: []string{converse}},
		{name: "slack", requests: []string{"POST /api/auth.test", "GET /api/users.list",
			"GET /api/conversations.history?channel=C1", "GET /api/users.info?user=U1",
			`POST /api/chat.postMessage {"channel":"C1","text":"a"}`,
			"POST /api/chat.postMessage channel=C2&text=b | Content-Type: " +
				"application/x-www-form-urlencoded"}},
		{name: "notion", requests: []string{"GET /v1/users/me", "POST /v1/search {}"}},
		{name: "reddit", requests: []string{"GET /api/v1/me", "POST /api/submit {}"}},
	} {
		j := judge(t, test.name, strings.Fields(test.limits)...)
		j.standin.Prices = test.prices
		j.standin.Faults = strings.Fields(test.faults)
		for _, request := range test.requests {
			parts := strings.Split(request, " | ") // the headers follow
			j.send(parts[0], parts[1:]...)
		}
		j.agree(test.over)
	}
}
