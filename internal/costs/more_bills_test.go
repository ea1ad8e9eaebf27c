package costs_test

import (
	"strings"
	"testing"

	"quotabudget/internal/costs"
)

// TestMoreBills: what the lists without a stand-in book for a call, and how they read a refusal.
func TestMoreBills(t *testing.T) {
	const gemini = "POST /v1beta/models/gemini-2.5-flash:generateContent"
	const chat = `"usage":{"prompt_tokens":1000,"completion_tokens":100`
	for _, c := range []struct {
		upstream, call, body string
		status               int
		response, want       string
		kind                 costs.Kind
		bucket               string
	}{
		{"gemini", gemini, `{"contents":[]}`, 200, `{"modelVersion":"gemini-2.5-flash","usageMetadata":` +
			`{"promptTokenCount":1000,"candidatesTokenCount":100,"thoughtsTokenCount":50,` +
			`"cachedContentTokenCount":400,"totalTokenCount":1150}}`,
			"input/gemini-2.5-flash 1000, money 567", "", ""}, // 600×0.3 + 400×0.03 + 150×2.5
		{"gemini", gemini, `{"contents":[]}`, 200, `[{"usageMetadata":{"promptTokenCount":10}},` +
			`{"usageMetadata":{"promptTokenCount":10,"totalTokenCount":12}}]`,
			"input/gemini-2.5-flash 10, money 8", "", ""},
		{"gemini", gemini, `{}`, 429, `{"error":{"status":"RESOURCE_EXHAUSTED","details":` +
			`[{"violations":[{"quotaId":"RequestsPerDay-FreeTier"}]},{"retryDelay":"30s"}]}}`,
			"input/gemini-2.5-flash 0, money 0", costs.Exhausted, "requests/gemini-2.5-flash"},
		{"gemini", gemini, `{}`, 429, `{"error":{"status":"RESOURCE_EXHAUSTED","details":` +
			`[{"violations":[{"quotaId":"RequestsPerMinute"}]},{"retryDelay":"30s"}]}}`,
			"input/gemini-2.5-flash 0, money 0", costs.Throttled, ""},
		{"mistral", "POST /v1/chat/completions", `{"model":"mistral-large-2512"}`, 200,
			`{"model":"mistral-large-2512",` + chat + `}}`,
			"tokens/mistral-large-2512 1100, money 650", "", ""},
		{"openrouter", "POST /api/v1/chat/completions", `{"model":"openai/gpt-4o"}`, 200,
			`{"model":"openai/gpt-4o",` + chat + `,"cost":0.0123}}`,
			"tokens/openai-gpt-4o 1100, money 12300", "", ""},
		{"openrouter", "POST /api/v1/chat/completions", `{"model":"openai/gpt-4o"}`, 402,
			`{"error":{"code":402,"message":"more credits are needed"}}`,
			"tokens/openai-gpt-4o 0, money 0", costs.Exhausted, "money"},
		{"azure-openai", "POST /openai/deployments/mine/chat/completions?api-version=1", `{}`, 200,
			`{"model":"gpt-4o-2024-11-20",` + chat + `}}`, "tokens/mine 1100, money 3500", "", ""},
		{"bedrock", "POST /model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse", `{}`, 200,
			`{"usage":{"inputTokens":1000,"outputTokens":100,"cacheReadInputTokens":1000}}`,
			"tokens/anthropic.claude-sonnet-4-5-20250929-v1-0 2100, money 4800", "", ""},
		{"reddit", "GET /r/golang/new", "", 200, `{}`, "requests 1", "", ""},
		{"reddit", "GET /r/golang/new", "", 429, `{}`, "requests 1", costs.Exhausted, "requests"},
		{"notion", "POST /v1/search", `{}`, 529, `{"code":"service_overload"}`, "requests 1",
			costs.Throttled, ""},
		{"slack", "GET /api/conversations.history", "", 200, `{"ok":true}`,
			"tier3/conversations.history 1", "", ""},
		{"slack", "POST /api/chat.postMessage", `{"channel":"C1"}`, 200, `{"ok":true}`,
			"messages/c1 1", "", ""},
		{"slack", "GET /api/users.list", "", 200, `{"ok":false,"error":"invalid_auth"}`,
			"tier2/users.list 1", costs.BadCredential, ""},
		{"slack", "GET /api/users.list", "", 200, `{"ok":false,"error":"ratelimited"}`,
			"tier2/users.list 1", costs.Throttled, ""},
	} {
		q := quoteOf(t, shipped(t, c.upstream), c.call, c.body)
		out := answered(q, c.status, "application/json", c.response, 99)
		var kind costs.Kind
		bucket := ""
		if out.Refusal != nil {
			kind, bucket = out.Refusal.Kind, out.Refusal.Bucket
		}
		if got := quoted(out.Costs); !strings.HasSuffix(got, c.want) || kind != c.kind ||
			bucket != c.bucket {
			t.Errorf("%s %s: %s, %s %s", c.call, c.response, got, kind, bucket)
		}
	}
}
