package costs_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
)

// listOf returns a price list with one bucket, units, and a method that holds units and settles them.
func listOf(keys, methods string) string {
	return `hosts: [api.example.test]
credential: bearer
sources: {page: {status: official, date: 2026-11, text: the price page}}
buckets: {units: {}}` + keys + `
methods:` + methods
}

// settling returns a list whose one method holds 10 to 500 units and settles an expression.
func settling(settle, keys string) string {
	return listOf("\n"+keys, `
  things.read:
    route: GET /v1/things
    source: page
    hold: {units: {estimate: 10, most: 500}}
    usage: [usage, "*.meta.usage"]
    settle: {units: "`+settle+`"}`)
}

// summary describes the outcome of a response: the costs and the missing figures; the lessons; and
// the refusal. A dash stands for none.
func summary(out costs.Outcome) string {
	took, lessons, refusal := quoted(out.Costs), "", "-"
	if out.Missing != nil {
		took += fmt.Sprint(" without ", out.Missing)
	}
	at := func(m costs.Moment) string {
		switch {
		case m.IsZero():
			return ""
		case m.After > 0:
			return " in " + m.After.String()
		}
		return " at " + m.At.Format(time.RFC3339)
	}
	for _, l := range out.Lessons {
		lessons += fmt.Sprintf("%d of %d%s ", l.Remaining, l.Limit, at(l.Reset))
	}
	for _, text := range out.Unread {
		lessons += "unread " + text + " "
	}
	if r := out.Refusal; r != nil {
		refusal = strings.TrimSpace(fmt.Sprint(r.Kind, " ", r.Bucket)) + at(r.Until)
		if r.Window {
			refusal += " for the window"
		}
	}
	if lessons == "" {
		lessons = "-"
	}
	return took + "; " + strings.TrimSpace(lessons) + "; " + refusal
}

// TestResponses reads responses by shipped lists, and by lists with the construct that a row is
// about.
func TestResponses(t *testing.T) {
	const things = "GET /v1/things"
	const message = `POST /v1/messages {"model":"claude-sonnet-4-5","max_tokens":9}`
	const chat = `POST /v1/chat/completions {"model":"gpt-5-mini","stream":true}`
	const mini = `POST /v1/chat/completions {"model":"gpt-4o-mini","messages":[],"max_completion_tokens":9}`
	const answer = `POST /v1/responses {"model":"gpt-5-mini","input":"hi"}`
	const gemini = `POST /v1beta/models/gemini-2.5-flash:generateContent {"contents":[]}`
	const router = `POST /api/v1/chat/completions {"model":"openai/gpt-4o"}`
	const usage = `"usage":{"prompt_tokens":1000,"completion_tokens":100`
	const query = `POST /graphql {"query":"{viewer{login}}"}`
	const secondary = `{"message":"You have exceeded a secondary rate limit. Please wait."}`
	const empty, ended = "; -; exhausted money for the window", "; -; exhausted money at "
	const bankrupt = `{"error":{"code":"insufficient_quota"}}`
	event := func(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }
	learn := func(rule string) string {
		return settling("1", "learn: [{bucket: units, "+rule+"}]")
	}
	zeros := settling("answer.quota.used + sum(answer.rows ?? [], .quota.used)",
		`zeros: [quota.used, quota.left, "rows.*.quota.used"]
learn: [{bucket: units, remaining: {path: quota.left}}]`)
	left := learn(`remaining: '2000 - int(split(header("x-usage"), ",")[1])'`)
	ietf := "remaining: ratelimit, reset: {header: ratelimit, as: seconds}"
	const burst = `RateLimit: "burst";r=9;t=1, "da;i,ly" ; r=500 ; t=60`
	const tokens = "anthropic-ratelimit-output-tokens-"
	const waiting = `{"error":[{"a":1},{"wait":"37s"}]}`
	for _, c := range []struct {
		list, call string // a shipped list, or the text of one
		status     int
		headers    string
		body       string
		want       string // end of the summary
	}{
		// remaining units: in a field of the IETF's draft, next to the limit, computed from the used ones
		{learn(ietf), things, 200, `RateLimit: "api";r=999;t=295`, "{}", "; 999 of 0 in 4m55s; -"},
		{learn(ietf + ", limit: ratelimit-policy"), things, 200,
			`RateLimit: "day";r=50;t=30|RateLimit-Policy: "day";q=100;w=86400`, "{}",
			"; 50 of 100 in 30s; -"},
		{learn(ietf + ", limit: ratelimit"), things, 200,
			"RateLimit: limit=100, remaining=50, reset=30", "{}", "; 50 of 100 in 30s; -"},
		{learn("remaining: {header: ratelimit, policy: \"da;i,ly\"}"), things, 200, burst, "{}",
			"; 500 of 0; -"},
		{learn("remaining: ratelimit"), things, 200, burst, "{}",
			`; unread ratelimit: "burst";r=9;t=1, "da;i,ly" ; r=500 ; t=60; -`},
		{learn("remaining: ratelimit"), things, 200, `RateLimit: "r=5"`, "{}",
			`; unread ratelimit: "r=5"; -`},
		{learn("remaining: x-calls, limit: x-calls"), things, 200, "X-Calls: 32/40", "{}",
			"; 8 of 40; -"},
		{learn("remaining: x-calls, limit: x-calls"), things, 200, "X-Calls: 41/40", "{}",
			"; 0 of 40; -"},
		{learn("remaining: x-left, limit: x-limit"), things, 200,
			"X-Left: 5|X-Limit: 100, 100;w=60", "{}", "; 5 of 100; -"},
		{learn("remaining: x-left"), things, 200, "X-Left: 9, 9;w=60", "{}",
			"; unread x-left: 9, 9;w=60; -"},
		{learn("used: x-used, limit: x-limit"), things, 200, "X-Used: 40|X-Limit: 50", "{}",
			"; 10 of 50; -"},
		{learn("used: x-used, limit: 1200"), things, 200, "X-Used: 200", "{}", "; 1000 of 1200; -"},
		{learn("used: x-used, limit: 1200"), things, 200, "X-Used: 1300", "{}", "; 0 of 1200; -"},
		{learn("used: x-used, limit: 1200"), things, 200, "X-Other: 1300", "{}", "; -; -"},
		{left, things, 200, "X-Usage: 15,150", "{}", "; 1850 of 0; -"},
		{left, things, 200, "X-Other: 15,150", "{}", "; -; -"},
		{learn("remaining: x-left, reset: {header: x-reset, as: epoch}"), things, 200,
			"X-Left: 5|X-Reset: 1795780860000", "{}", "; 5 of 0 at 2026-11-27T12:01:00Z; -"},
		{learn("reset: {path: error.*.wait, as: duration}"), things, 200, "", waiting,
			"; -1 of 0 in 37s; -"},
		{settling("1", "refusals: [{status: 429, kind: throttled, until: {path: error.*.wait, "+
			"as: duration}}]"), things, 429, "", waiting, "; -; throttled in 37s"},
		{settling("1", "errors: {reasons: [{name: code}]}\nrefusals: [{status: 429, "+
			`where: says("spent"), kind: exhausted, bucket: units, until: 1m}]`), things, 429, "",
			`{"code":"spent"}`, "; -; exhausted units in 1m0s"},
		// invalid headers are ignored
		{"anthropic", message, 200, "", "{}", "; -; -"},
		{"anthropic", message, 200, tokens + "limit: 8000|" + tokens + "remaining: 812|" + tokens +
			"reset: 2026-11-22T15:04:05Z", "{}", "; 812 of 8000 at 2026-11-22T15:04:05Z; -"},
		{"anthropic", message, 200, tokens + "remaining: 0", "{}", "; 0 of 0; -"},
		{"anthropic", message, 200, tokens + "remaining: -1|" + tokens + "reset: 60", "{}",
			"; unread " + tokens + "reset: 60; -"},
		{"anthropic", message, 200, tokens + "remaining: many|" + tokens + "limit: -5|" + tokens +
			"reset: 2026-11-22T15:04:05Z", "{}", "; -1 of 0 at 2026-11-22T15:04:05Z unread " + tokens +
			"limit: -5 unread " + tokens + "remaining: many; -"},
		{"anthropic", message, 200, tokens + "limit: 8000", "{}", "; -; -"},
		{"anthropic", message, 200, tokens + "remaining: 5|" + tokens + "reset: 2200-01-01T00:00:00Z",
			"{}", "; 5 of 0 unread " + tokens + "reset: 2200-01-01T00:00:00Z; -"},
		{"anthropic", message, 200, tokens + "limit: 1e300|" + tokens + "remaining: NaN|" + tokens +
			"reset: 1795359845", "{}", "; unread " + tokens + "limit: 1e300 unread " + tokens +
			"remaining: NaN unread " + tokens + "reset: 1795359845; -"},
		{"generic", "GET /a", 200, "x-request-cost: 5|x-ratelimit-remaining: 8", "",
			"requests 1, units 5; 8 of 0; -"},
		{"generic", "GET /a", 200, "x-request-cost: 1|x-request-cost: 5", "", "units 10 without " +
			`[int(header("x-request-cost")) cannot be computed: invalid operation: int(1, 5) (1:1)]; -; -`},
		{"generic", "GET /a", 200, "x-ratelimit-remaining: 9|x-ratelimit-remaining: 8", "",
			"; unread x-ratelimit-remaining: 9, 8; -"},
		// a number that an upstream omits is 0 if its object exists
		{zeros, things, 200, "", `{"quota":{"left":5}}`, "units 0; 5 of 0; -"},
		{zeros, things, 200, "", `{"quota":{"used":3}}`, "units 3; 0 of 0; -"},
		{zeros, things, 200, "", `{"quota":{}}`, "units 0; 0 of 0; -"},
		{zeros, things, 200, "", `{"quota":{},"rows":[{"quota":{}},{"quota":{"used":2}}]}`,
			"units 2; 0 of 0; -"},
		{zeros, things, 200, "", `{}`, "units 500 without [answer.quota.used]; -; -"},
		{zeros, things, 200, "", `{"quota":null}`, "units 500 without [answer.quota.used]; -; -"},
		{zeros, things, 200, "", `{"quota":{},"rows":[{}]}`, "; 0 of 0; -"},
		// a total of 0 with parts that are not 0 is wrong
		{"openai", mini, 200, "", `{` + usage + `,"total_tokens":0}}`, "tokens/gpt-4o-mini 1100, money 210; -; -"},
		{"openai", mini, 200, "", `{` + usage + `}}`, "tokens/gpt-4o-mini 1100, money 210; -; -"},
		{"openai", mini, 200, "", `{` + usage + `,"total_tokens":2000}}`,
			"tokens/gpt-4o-mini 2000, money 210; -; -"},
		{"openai", mini, 200, "", `{"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`,
			"tokens/gpt-4o-mini 0, money 0; -; -"},
		// a response that does not show its post is booked as a post with a link
		{"x", `POST /2/tweets {"text":"hi"}`, 201, "", `{"data":{"id":"1"}}`,
			"money 200000 without [answer.data.text]; -; -"},
		{"x", `POST /2/tweets {"text":"hi"}`, 201, "", `{}`,
			"money 200000 without [answer.data.text]; -; -"},
		{"x", `POST /2/tweets {"text":"hi"}`, 201, "", `{"data":{"text":"hi"}}`,
			"money 15000; -; -"},
		{"x", `POST /2/tweets {"text":"hi"}`, 201, "", `{"data":{"text":"https://t.co/a"}}`,
			"money 200000; -; -"},
		// costs of other lists
		{"gemini", gemini, 200, "", `{"modelVersion":"gemini-2.5-flash","usageMetadata":` +
			`{"promptTokenCount":1000,"candidatesTokenCount":100,"thoughtsTokenCount":50,` +
			`"cachedContentTokenCount":400,"totalTokenCount":1150}}`, // 600×0.3 + 400×0.03 + 150×2.5
			"input/gemini-2.5-flash 1000, money 567; -; -"},
		{"gemini", gemini, 200, "", `[{"usageMetadata":{"promptTokenCount":10}},` +
			`{"usageMetadata":{"promptTokenCount":10,"totalTokenCount":12}}]`,
			"input/gemini-2.5-flash 10, money 8; -; -"},
		{"mistral", `POST /v1/chat/completions {"model":"mistral-large-2512"}`, 200, "",
			`{"model":"mistral-large-2512",` + usage + `}}`,
			"tokens/mistral-large-2512 1100, money 650; -; -"},
		{"openrouter", router, 200, "", `{"model":"openai/gpt-4o",` + usage + `,"cost":0.0123}}`,
			"tokens/openai-gpt-4o 1100, money 12300; -; -"},
		{"azure-openai", "POST /openai/deployments/mine/chat/completions?api-version=1 {}", 200, "",
			`{"model":"gpt-4o-2024-11-20",` + usage + `}}`, "tokens/mine 1100, money 3500; -; -"},
		{"bedrock", "POST /model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse {}", 200, "",
			`{"usage":{"inputTokens":1000,"outputTokens":100,"cacheReadInputTokens":1000}}`,
			"tokens/anthropic.claude-sonnet-4-5-20250929-v1-0 2100, money 4800; -; -"},
		{"reddit", "GET /r/golang/new", 200, "", `{}`, "requests 1; -; -"},
		{"slack", "GET /api/conversations.history", 200, "", `{"ok":true}`,
			"tier3/conversations.history 1; -; -"},
		{"slack", `POST /api/chat.postMessage {"channel":"C1"}`, 200, "", `{"ok":true}`,
			"messages/c1 1; -; -"},
		// accounts without credit, or above a spending limit
		{"anthropic", message, 400, "", `{"type":"error","error":{"type":"invalid_request_error",` +
			`"message":"Your credit balance is too low to access the API."}}`, empty},
		{"anthropic", message, 400, "", `{"type":"error","error":{"type":"invalid_request_error",` +
			`"message":"You have reached your specified API usage limits. You will regain access ` +
			`on 2026-12-01 at 00:00 UTC."}}`, ended + "2026-12-01T00:00:00Z"},
		{"anthropic", message, 402, "", `{"type":"error","error":{"type":"billing_error"}}`, empty},
		{"anthropic", message, 400, "", `{"type":"error","error":{"type":"billing_error"}}`, empty},
		{"anthropic", message, 200, "", event("error",
			`{"type":"error","error":{"type":"billing_error"}}`), empty},
		{"anthropic", message, 200, "", event("error", `{"type":"error","error":{"type":`+
			`"invalid_request_error","message":"You have reached your specified API usage limits. `+
			`You will regain access on 2026-12-01 at 00:00 UTC."}}`), ended + "2026-12-01T00:00:00Z"},
		{"anthropic", message, 200, "", event("error",
			`{"type":"error","error":{"message":"Your credit balance is too low to go on."}}`), empty},
		{"anthropic", message, 400, "", `{"type":"error","error":{"type":"invalid_request_error",` +
			`"message":"max_tokens: Your credit balance is too low"}}`, "; -; permanent"},
		{"openai", chat, 429, "", `{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}`,
			empty},
		{"openai", chat, 400, "", `{"error":{"code":"billing_hard_limit_reached"}}`, empty},
		{"openai", chat, 200, "", `data: {"choices":[{"delta":{"content":"\"error\""}}]}` +
			"\n\ndata: " + bankrupt, empty},
		{"openai", answer, 200, "", event("error", `{"type":"error","code":"insufficient_quota"}`),
			empty},
		{"openai", answer, 200, "", event("response.failed",
			`{"type":"response.failed","response":`+bankrupt+`}`), empty},
		{"openai", answer, 200, "", event("error",
			`{"type":"error","code":"project_spend_limit_exceeded"}`), empty},
		{"openai", chat, 429, "", `{"error":{"message":"You exceeded your current quota, please check ` +
			`your plan.","code":null}}`, empty},
		{"openai", answer, 200, "", event("error", `{"type":"error","code":"server_error"}`), "; -; -"},
		{"openai", chat, 200, "", `{"choices":[],"error":{"code":"insufficient_quota"}}`, "; -; -"},
		{"x", "GET /2/tweets/1", 402, "", `{"title":"CreditsDepleted"}`, empty},
		{"x", "GET /2/tweets/1", 403, "", `{"title":"SpendCapReached","reset_date":"2026-12-24"}`,
			ended + "2026-12-24T00:00:00Z"},
		{"x", "GET /2/tweets/1", 403, "", `{"title":"SpendCapReached","detail":"Blocked until the next ` +
			`cycle begins on 2026-12-24."}`, ended + "2026-12-24T00:00:00Z"},
		{"x", "GET /2/tweets/1", 403, "", `{"errors":[{"title":"CreditsDepleted"}]}`, empty},
		{"x", "GET /2/tweets/1", 403, "", `{"title":"Forbidden"}`, "; -; permanent"},
		{"generic", "GET /a", 402, "", "", "; -; exhausted units for the window"},
		{"openrouter", router, 402, "", `{"error":{"code":402,"message":"more credits are needed"}}`,
			"tokens/openai-gpt-4o 0, money 0" + empty},
		{"gemini", gemini, 429, "", `{"error":{"status":"RESOURCE_EXHAUSTED","details":` +
			`[{"violations":[{"quotaId":"RequestsPerDay-FreeTier"}]},{"retryDelay":"30s"}]}}`,
			"input/gemini-2.5-flash 0, money 0; -; exhausted requests/gemini-2.5-flash for the window"},
		{"reddit", "GET /r/golang/new", 429, "", `{}`, "requests 1; -; exhausted requests"},
		// a limit against bursts, and throttles, for as long as a header says or for a minute
		{"gemini", gemini, 429, "", `{"error":{"status":"RESOURCE_EXHAUSTED","details":` +
			`[{"violations":[{"quotaId":"RequestsPerMinute"}]},{"retryDelay":"30s"}]}}`,
			"input/gemini-2.5-flash 0, money 0; -; throttled in 30s"},
		{"github", "GET /user", 403, "Retry-After: 60", secondary, "; -; throttled in 1m0s"},
		{"github", "GET /user", 429, "Retry-After: 7", secondary, "; -; throttled in 7s"},
		{"github", "GET /user", 403, "", secondary, "; -; throttled in 1m0s"},
		{"github", "GET /user", 429, "", "", "; -; throttled in 1m0s"},
		{"github", query, 200, "", secondary, "; -; throttled in 1m0s"},
		{"github", "GET /user", 403, "",
			`{"message":"You have triggered an abuse detection mechanism."}`, "; -; throttled in 1m0s"},
		{"github", "GET /user", 403, "", `{"message":"Resource not accessible"}`, "; -; permanent"},
		{"anthropic", message, 503, "Retry-After: 7", "{}", "; -; throttled in 7s"},
		{"anthropic", message, 529, "Retry-After: 7", "{}", "; -; throttled in 7s"},
		{"x", "GET /2/tweets/1", 503, "Retry-After: 7", "{}", "; -; throttled requests/x.tweets.get in 7s"},
		{"x", "GET /2/tweets/1", 429, "", "{}", "; -; throttled requests/x.tweets.get in 1m0s"},
		{"openai", chat, 429, "Retry-After-Ms: 1500", "{}", "; -; throttled in 1.5s"},
		{"openai", chat, 429, "Retry-After: 30|Retry-After: 40", "{}", "; -; throttled in 40s"},
		{"notion", "POST /v1/search {}", 529, "", `{"code":"service_overload"}`,
			"requests 1; -; throttled"},
		{"slack", "GET /api/users.list", 200, "", `{"ok":false,"error":"ratelimited"}`,
			"tier2/users.list 1; -; throttled"},
		{"slack", "GET /api/users.list", 200, "", `{"ok":false,"error":"invalid_auth"}`,
			"tier2/users.list 1; -; bad credential"},
		// GitHub reports an exhausted limit of GraphQL with 200 or 403, and in the words of REST
		{"github", query, 403, "X-RateLimit-Remaining: 0|X-RateLimit-Resource: graphql|" +
			"X-RateLimit-Reset: 1795712400", `{"message":"API rate limit exceeded for user ID 1."}`,
			"; exhausted graphql at 2026-11-26T17:00:00Z"},
		{"github", query, 429, "X-RateLimit-Remaining: 0|X-RateLimit-Resource: graphql|" +
			"X-RateLimit-Reset: 1795712400", `{"message":"API rate limit exceeded for user ID 1."}`,
			"; exhausted graphql at 2026-11-26T17:00:00Z"},
	} {
		var table *costs.Table
		if strings.Contains(c.list, "\n") {
			table = parsed(t, c.list)
		} else {
			table = shipped(t, c.list)
		}
		parts := append(strings.SplitN(c.call, " ", 3), "")
		q := quoteOf(t, table, parts[0]+" "+parts[1], parts[2])
		h := http.Header{"Content-Type": {"application/json"}}
		if strings.HasPrefix(c.body, "event:") || strings.HasPrefix(c.body, "data:") {
			h.Set("Content-Type", "text/event-stream")
		}
		for line := range strings.SplitSeq(c.headers, "|") {
			name, value, _ := strings.Cut(line, ": ")
			h.Add(name, value)
		}
		o := q.Observe(c.status, h)
		_, err := o.Write([]byte(c.body))
		must(t, err)
		if got := summary(o.Close()); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s %s: %d %s %s: %s, want %s", c.list, c.call, c.status, c.headers, c.body, got,
				c.want)
		}
	}
}
