package costs_test

import (
	"strings"
	"testing"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// billing is a call of a model, its response, and the money that it takes.
type billing struct {
	request, response string
	money             int64
}

// booked returns the money that the list of an upstream books for a call, and all else.
func (b billing) booked(t *testing.T, upstream, path string) (money int64, out costs.Outcome) {
	t.Helper()
	q := quoteOf(t, shipped(t, upstream), "POST "+path, b.request)
	kind := "application/json"
	if strings.HasPrefix(b.response, "data: ") {
		kind = "text/event-stream"
	}
	out = answered(q, 200, kind, b.response, 99)
	return quota.UnitsOf(out.Costs)["money"], out
}

// bills checks the money that each call is booked with.
func bills(t *testing.T, upstream, path string, all []billing) {
	t.Helper()
	for _, b := range all {
		if money, _ := b.booked(t, upstream, path); money != b.money {
			t.Errorf("%s, %s: %d, want %d", b.request, b.response, money, b.money)
		}
	}
}

// TestOpenAIBills: the list of OpenAI books what a bill would show, in millionths of a dollar.
func TestOpenAIBills(t *testing.T) {
	const k = `"usage":{"prompt_tokens":1000,"completion_tokens":1000,"total_tokens":2000}`
	long := func(prompt, rest string) string {
		return `{"usage":{"prompt_tokens":` + prompt + `,"completion_tokens":1000` + rest + `}}`
	}
	asking := func(model, more string) string {
		return `{"model":"` + model + `","messages":[],"max_completion_tokens":9` + more + `}`
	}
	bills(t, "openai", "/v1/chat/completions", []billing{
		{asking("gpt-4", ""), `{` + k + `}`, 90_000},
		{asking("gpt-3.5-turbo-0125", ""), `{` + k + `}`, 2_000},
		{asking("o3", ""), `{` + k + `}`, 10_000},
		{asking("gpt-6.2-astra", ""), `{` + k + `}`, 48_000},
		{asking("ft:gpt-4o-mini-2024-07-18:acme::7p4lURel", ""), `{` + k + `}`, 1_500},
		{asking("gpt-5.4-unheard-of", ""), `{` + k + `}`, 750_000},
		// reads from caches and writes to them: 2000×0.2 + 6000×0.25 + 2000×0.02 + 1000×1.2
		{asking("gpt-5.6-luna", ""), long("10000", `,"prompt_tokens_details":`+
			`{"cached_tokens":2000,"cache_write_tokens":6000}`), 3_140},
		{asking("gpt-5.4", ""), long("1000", `,"prompt_tokens_details":{"cached_tokens":null,`+
			`"cache_write_tokens":null,"audio_tokens":null},"completion_tokens_details":null`), 17_500},
		{asking("gpt-audio", ""), long("1000", `,"prompt_tokens_details":{"audio_tokens":600},`+
			`"completion_tokens_details":{"audio_tokens":800}`), 73_400},
		// the whole request of a long prompt
		{asking("gpt-5.4", ""), long("272000", ""), 695_000},
		{asking("gpt-5.4", ""), long("272001", ""), 1_382_505},
		{asking("gpt-6-sol", ""), long("300000", `,"prompt_tokens_details":`+
			`{"cached_tokens":100000}`), 855_000},
		// the tier that was used
		{asking("gpt-5.5", `,"service_tier":"fast"`), `{"service_tier":"fast",` + k + `}`, 87_500},
		{asking("gpt-5.4", `,"service_tier":"priority"`), `{"service_tier":"default",` + k + `}`,
			17_500},
		{asking("gpt-5.4", ""), `{"service_tier":"priority",` + k + `}`, 35_000},
		{asking("gpt-5.4", `,"service_tier":"flex"`), `{"service_tier":null,` + k + `}`, 8_750},
		{asking("gpt-5.4", ""), `{"service_tier":"a new one",` + k + `}`, 35_000},
		// the model that was used
		{asking("gpt-4", ""), `{"model":"gpt-4o-mini-2024-07-18",` + k + `}`, 750},
		{asking("gpt-4", ""), `{"model":"my-deployment",` + k + `}`, 90_000},
		{asking("gpt-4", `,"stream":true`), "data: {\"model\":\"\"}\n\ndata: {\"model\":" +
			"\"gpt-4-0613\"," + k + "}\n\ndata: [DONE]\n\n", 90_000},
		// a stream that does not report it: 1,068 × 30 + 8,192 × 60, the whole context of the model
		{`{"model":"gpt-4","stream":true,"messages":[],"user":"somebody with a name"}`,
			"data: {\"model\":\"gpt-4\"}\n\ndata: [DONE]\n\n", 523_770},
		{asking("gpt-4o", `,"web_search_options":{}`), `{` + k + `}`, 37_500},
		{asking("gpt-4o-mini-search-preview", ""), `{` + k + `}`, 25_750},
	})
	const r = `,"usage":{"input_tokens":1000,"output_tokens":1000,"total_tokens":2000}}`
	bills(t, "openai", "/v1/responses", []billing{
		{`{"prompt":{"id":"pmpt_1"}}`, `{"model":"gpt-4o-mini"` + r, 750},
		{`{"model":"gpt-5-nano"}`, `{"output":[{"type":"web_search_call"},{"type":"message"},` +
			`{"type":"file_search_call"},{}]` + r, 12_950},
		// a container costs once, however often it runs code
		{`{"model":"gpt-5-nano"}`, `{"output":[{"type":"code_interpreter_call","container_id":"a"},` +
			`{"type":"code_interpreter_call","container_id":"a"},` +
			`{"type":"code_interpreter_call","container_id":"b"}]` + r, 60_450},
		{`{"model":"gpt-5-nano"}`, `{"output":[{"type":"image_generation_call","quality":"low",` +
			`"size":"1024x1024"},{"type":"image_generation_call"}]` + r, 261_450},
	})
}

// TestAnthropicBills: the list of Anthropic books what a bill would show.
func TestAnthropicBills(t *testing.T) {
	usage := func(more string) string {
		return `{"usage":{"input_tokens":1000,"output_tokens":1000` + more + `}}`
	}
	asking := func(model, more string) string {
		return `{"model":"` + model + `","messages":[],"max_tokens":9` + more + `}`
	}
	const served = `{"model":"claude-opus-4-8","usage":{"input_tokens":412,"output_tokens":264,` +
		`"iterations":[{"type":"message","model":"claude-fable-5","input_tokens":408,` +
		`"output_tokens":0},{"type":"fallback_message","model":"claude-opus-4-8",` +
		`"input_tokens":412,"output_tokens":264}]}}`
	bills(t, "anthropic", "/v1/messages", []billing{
		{asking("claude-opus-4-8", ""), usage(""), 30_000},
		{asking("claude-opus-4-1-20250805", ""), usage(""), 90_000},
		{asking("claude-sonnet-5", ""), usage(""), 12_000},
		{asking("claude-3-7-sonnet-latest", ""), usage(""), 18_000},
		{asking("claude-opus-4-9", ""), usage(""), 90_000},
		// reads from caches, and writes for five minutes and for an hour
		{asking("claude-opus-5-5", ""), usage(`,"cache_read_input_tokens":1000000`), 224_000},
		{asking("claude-fable-5-1", ""), usage(`,"cache_read_input_tokens":1000000`), 310_000},
		{asking("claude-opus-5", ""), usage(`,"cache_creation_input_tokens":300,` +
			`"cache_creation":{"ephemeral_1h_input_tokens":100}`), 32_250},
		{asking("claude-opus-5", ""), usage(`,"cache_creation_input_tokens":null,` +
			`"cache_creation":{"ephemeral_5m_input_tokens":200,"ephemeral_1h_input_tokens":100}`),
			32_250},
		{asking("claude-opus-5", ""), usage(`,"cache_read_input_tokens":null,"speed":null,` +
			`"server_tool_use":null,"iterations":null,"inference_geo":null`), 30_000},
		// long prompts, whatever of them came from a cache
		{asking("claude-haiku-5-5", ""), usage(`,"cache_read_input_tokens":99000`), 1_590},
		{asking("claude-haiku-5-5", ""), usage(`,"cache_read_input_tokens":99001`), 7_951},
		// how and where it was served
		{asking("claude-opus-5", `,"speed":"fast"`), usage(`,"speed":"fast"`), 60_000},
		{asking("claude-opus-5", `,"speed":"fast"`), usage(`,"speed":"standard"`), 30_000},
		{asking("claude-opus-5", ""), usage(`,"inference_geo":"us"`), 33_000},
		{asking("claude-opus-5", `,"speed":"fast","inference_geo":"us"`), usage(""), 66_000},
		{asking("claude-opus-5", ""), usage(`,"service_tier":"batch"`), 15_000},
		// several models in one response
		{asking("claude-sonnet-4-6", ""), usage(`,"iterations":[{"type":"compaction",` +
			`"input_tokens":90000,"output_tokens":500},{"type":"message","input_tokens":1000,` +
			`"output_tokens":1000}]`), 295_500},
		{asking("claude-sonnet-4-6", ""), usage(`,"iterations":[{"type":"advisor_message",` +
			`"model":"claude-opus-4-8","input_tokens":3000,"output_tokens":900}]`), 55_500},
		{asking("claude-fable-5", ""), served, 8_660},
		{asking("claude-opus-5", ""), usage(`,"server_tool_use":{"web_search_requests":2}`), 50_000},
	})
	// what may be written to a cache costs twice as much, if the request asks for that
	for body, want := range map[string]int64{
		asking("claude-opus-5", ""):                                1054*5 + 9*25,
		asking("claude-opus-5", `,"cache_control":{}`):             1073*10 + 9*25,
		asking("claude-opus-5", `,"system":[{"cache_control":1}]`): 1085*10 + 9*25,
	} {
		q := quoteOf(t, shipped(t, "anthropic"), "POST /v1/messages", body)
		if money := q.Costs[3]; max(money.Units, money.Most) != want {
			t.Errorf("%s can take %v, want %d", body, money, want)
		}
	}
	compacted := billing{asking("claude-sonnet-4-6", ""), usage(`,"iterations":[{"type":` +
		`"compaction","input_tokens":90000,"output_tokens":500},{"type":"advisor_message",` +
		`"model":"claude-opus-4-8","input_tokens":7,"output_tokens":7}]`), 0}
	_, out := compacted.booked(t, "anthropic", "/v1/messages")
	if got := quoted(out.Costs[:3]); got != "requests/sonnet-4 1, input/sonnet-4 91000, "+
		"output/sonnet-4 1500" {
		t.Errorf("the limits of the class count %s", got)
	}
}
