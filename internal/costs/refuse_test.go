package costs_test

import (
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
)

// refusalOf returns what the list of an upstream makes of a response to a call.
func refusalOf(t *testing.T, upstream, target, body string, status int, kind, answer string,
	headers ...string) *costs.Refusal {
	t.Helper()
	q := quoteOf(t, shipped(t, upstream), target, body)
	return answered(q, status, kind, answer, 100, headers...).Refusal
}

// TestExhaustedAccounts: an account without credit, or above a limit of spending, closes the money
// until the moment that the response names, or else until the end of the month.
func TestExhaustedAccounts(t *testing.T) {
	const message = `POST /v1/messages {"model":"claude-sonnet-4-5","max_tokens":9}`
	const chat = `POST /v1/chat/completions {"model":"gpt-5-mini","stream":true}`
	const response = `POST /v1/responses {"model":"gpt-5-mini","input":"hi"}`
	const post = "GET /2/tweets/1"
	for _, c := range []struct {
		upstream, call string
		status         int
		body           string
		want           costs.Kind
		until          string
	}{
		{"anthropic", message, 400, `{"type":"error","error":{"type":"invalid_request_error",` +
			`"message":"Your credit balance is too low to access the API."}}`, costs.Exhausted, ""},
		{"anthropic", message, 400, `{"type":"error","error":{"type":"invalid_request_error",` +
			`"message":"You have reached your specified API usage limits. You will regain access ` +
			`on 2026-12-01 at 00:00 UTC."}}`, costs.Exhausted, "2026-12-01T00:00:00Z"},
		{"anthropic", message, 402, `{"type":"error","error":{"type":"billing_error"}}`,
			costs.Exhausted, ""},
		{"anthropic", message, 200, "event: error\ndata: {\"type\":\"error\",\"error\":" +
			"{\"type\":\"billing_error\"}}\n\n", costs.Exhausted, ""},
		{"anthropic", message, 400, `{"type":"error","error":{"type":"billing_error"}}`,
			costs.Exhausted, ""},
		{"anthropic", message, 200, "event: error\ndata: {\"type\":\"error\",\"error\":" +
			"{\"type\":\"invalid_request_error\",\"message\":\"You have reached your specified API " +
			"usage limits. You will regain access on 2026-12-01 at 00:00 UTC.\"}}\n\n",
			costs.Exhausted, "2026-12-01T00:00:00Z"},
		{"anthropic", message, 200, "event: error\ndata: {\"type\":\"error\",\"error\":" +
			"{\"message\":\"Your credit balance is too low to go on.\"}}\n\n", costs.Exhausted, ""},
		{"anthropic", message, 400, `{"type":"error","error":{"type":"invalid_request_error",` +
			`"message":"max_tokens: Your credit balance is too low"}}`, costs.Permanent, ""},
		{"openai", chat, 429, `{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}`,
			costs.Exhausted, ""},
		{"openai", chat, 400, `{"error":{"code":"billing_hard_limit_reached"}}`, costs.Exhausted, ""},
		{"openai", chat, 200, "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"error\\\"\"}}]}\n\n" +
			"data: {\"error\":{\"code\":\"insufficient_quota\"}}", costs.Exhausted, ""},
		{"openai", response, 200, "event: error\ndata: {\"type\":\"error\"," +
			"\"code\":\"insufficient_quota\"}\n\n", costs.Exhausted, ""},
		{"openai", response, 200, "event: response.failed\ndata: {\"type\":\"response.failed\"," +
			"\"response\":{\"error\":{\"code\":\"insufficient_quota\"}}}\n\n", costs.Exhausted, ""},
		{"openai", response, 200, "event: error\ndata: {\"type\":\"error\"," +
			"\"code\":\"project_spend_limit_exceeded\"}\n\n", costs.Exhausted, ""},
		{"openai", chat, 429, `{"error":{"message":"You exceeded your current quota, please check ` +
			`your plan.","code":null}}`, costs.Exhausted, ""},
		{"openai", response, 200, "event: error\ndata: {\"type\":\"error\"," +
			"\"code\":\"server_error\"}\n\n", "", ""},
		{"openai", chat, 200, `{"choices":[],"error":{"code":"insufficient_quota"}}`, "", ""},
		{"x", post, 402, `{"title":"CreditsDepleted"}`, costs.Exhausted, ""},
		{"x", post, 403, `{"title":"SpendCapReached","reset_date":"2026-12-24"}`, costs.Exhausted,
			"2026-12-24T00:00:00Z"},
		{"x", post, 403, `{"title":"SpendCapReached","detail":"Blocked until the next cycle begins ` +
			`on 2026-12-24."}`, costs.Exhausted, "2026-12-24T00:00:00Z"},
		{"x", post, 403, `{"errors":[{"title":"CreditsDepleted"}]}`, costs.Exhausted, ""},
		{"x", post, 403, `{"title":"Forbidden"}`, costs.Permanent, ""},
		{"generic", "GET /a", 402, "", costs.Exhausted, ""},
	} {
		parts := strings.SplitN(c.call+" ", " ", 3)
		kind := "application/json"
		if !strings.HasPrefix(c.body, "{") {
			kind = "text/event-stream"
		}
		r := refusalOf(t, c.upstream, parts[0]+" "+parts[1], strings.TrimSpace(parts[2]), c.status,
			kind, c.body)
		if r == nil {
			r = &costs.Refusal{}
		}
		until := ""
		if !r.Until.IsZero() {
			until = r.Until.At.Format(time.RFC3339)
		}
		if r.Kind != c.want || until != c.until || (c.want == costs.Exhausted) &&
			(r.Bucket != "money" && r.Bucket != "units" || r.Window != (until == "")) {
			t.Errorf("%s %d %s: %+v, want %s %s", c.upstream, c.status, c.body, r, c.want, c.until)
		}
	}
}

// TestSecondaryLimits: a limit against bursts holds calls back for as long as its header says, and
// for a minute where it has none.
func TestSecondaryLimits(t *testing.T) {
	const secondary = `{"message":"You have exceeded a secondary rate limit. Please wait."}`
	const query = `{"query":"{viewer{login}}"}`
	for _, c := range []struct {
		target, body, answer string
		status               int
		headers              []string
		want                 time.Duration
	}{
		{"GET /user", "", secondary, 403, []string{"Retry-After", "60"}, time.Minute},
		{"GET /user", "", secondary, 429, []string{"Retry-After", "7"}, 7 * time.Second},
		{"GET /user", "", secondary, 403, nil, time.Minute},
		{"GET /user", "", "", 429, nil, time.Minute},
		{"POST /graphql", query, secondary, 200, nil, time.Minute},
		{"GET /user", "", `{"message":"You have triggered an abuse detection mechanism."}`, 403, nil,
			time.Minute},
		{"GET /user", "", `{"message":"Resource not accessible"}`, 403, nil, 0},
	} {
		r := refusalOf(t, "github", c.target, c.body, c.status, "application/json", c.answer,
			c.headers...)
		if (r.Kind == costs.Throttled) != (c.want > 0) || r.Bucket != "" || r.Until.After != c.want {
			t.Errorf("%s %d %v: %+v", c.target, c.status, c.headers, r)
		}
	}
}

// TestThrottlesByHeader: a throttle holds back for as long as its header says, in whatever form.
func TestThrottlesByHeader(t *testing.T) {
	const message = `{"model":"claude-sonnet-4-5","max_tokens":9}`
	const chat = `{"model":"gpt-5-mini"}`
	for _, c := range []struct {
		upstream, target, body string
		status                 int
		headers                []string
		want                   time.Duration
	}{
		{"anthropic", "POST /v1/messages", message, 503, []string{"Retry-After", "7"}, 7 * time.Second},
		{"anthropic", "POST /v1/messages", message, 529, []string{"Retry-After", "7"}, 7 * time.Second},
		{"x", "GET /2/tweets/1", "", 503, []string{"Retry-After", "7"}, 7 * time.Second},
		{"x", "GET /2/tweets/1", "", 429, nil, time.Minute},
		{"openai", "POST /v1/chat/completions", chat, 429, []string{"Retry-After-Ms", "1500"},
			1500 * time.Millisecond},
		{"openai", "POST /v1/chat/completions", chat, 429, []string{"Retry-After", "30", "Retry-After",
			"40"}, 40 * time.Second},
	} {
		r := refusalOf(t, c.upstream, c.target, c.body, c.status, "application/json", "{}",
			c.headers...)
		if r.Kind != costs.Throttled || r.Until.After != c.want {
			t.Errorf("%s %d %v: %+v, want %s", c.upstream, c.status, c.headers, r, c.want)
		}
	}
}

// TestGraphQLOfGitHubExhausted: GitHub says so with 200 or 403, and in the words of REST.
func TestGraphQLOfGitHubExhausted(t *testing.T) {
	for _, status := range []int{403, 429} {
		r := refusalOf(t, "github", "POST /graphql", `{"query":"{viewer{login}}"}`, status,
			"application/json", `{"message":"API rate limit exceeded for user ID 1."}`,
			"X-RateLimit-Remaining", "0", "X-RateLimit-Resource", "graphql", "X-RateLimit-Reset",
			"1795712400")
		if r.Kind != costs.Exhausted || r.Bucket != "graphql" || r.Until.At.Unix() != 1795712400 {
			t.Errorf("%d: %+v", status, r)
		}
	}
}

// TestStreamInBackground: a stream of a response in the background that ends before the response
// does names the id by which another call gets its usage. That of any other response does not.
func TestStreamInBackground(t *testing.T) {
	table := shipped(t, "openai")
	const body = `{"model":"gpt-5-mini","input":"hi","stream":true}`
	r := call(t, "POST /v1/responses", body)
	q, err := table.Quote("openai.responses.create", r, []byte(body), nil)
	must(t, err)
	event := func(kind, more string) string {
		return "event: response." + kind + "\ndata: {\"type\":\"response." + kind + "\",\"response\":" +
			"{\"id\":\"resp_1\",\"status\":\"" + kind + "\"" + more + "}}\n\n"
	}
	const background, usage = `,"background":true`, `,"usage":{"input_tokens":3,"output_tokens":4}`
	for stream, want := range map[string]string{
		event("queued", background):                                         "/v1/responses/resp_1",
		event("queued", background) + event("in_progress", background):      "/v1/responses/resp_1",
		event("queued", background) + event("completed", background+usage):  "",
		event("queued", "") + event("in_progress", `,"background":false`):   "",
		event("queued", background) + event("incomplete", background+usage): "",
	} {
		if out := answered(q, 200, "text/event-stream", stream, 99); out.Pending != want {
			t.Errorf("%s: %q, want %q", stream, out.Pending, want)
		}
	}
}
