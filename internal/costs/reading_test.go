package costs_test

import (
	"net/http"
	"testing"

	"quotabudget/internal/costs"
)

// TestUsageInOtherForms: usage is found in a list, in lines of JSON and in streams that do not end,
// whatever the Content-Type is.
func TestUsageInOtherForms(t *testing.T) {
	table := parsed(t, settling("max(usage.total, usage.parts ?? 0)", ""))
	q := quoteOf(t, table, "GET /v1/things", "")
	const mark, jsonKind, stream = "\ufeff", "application/json", "text/event-stream"
	const last = `{"usage":{"total":9}}`
	const lines = `{"usage":{"total":3}}` + "\n" + last
	for name, c := range map[string]struct{ kind, body, want string }{
		"a byte order mark":      {jsonKind, mark + last, "units 9"},
		"a mark of another text": {"text/plain", mark + last, "units 9"},
		"text":                   {"text/plain; charset=utf-8", last, "units 9"},
		"bytes":                  {"application/octet-stream", last, "units 9"},
		"JSON called a stream":   {stream, " " + last, "units 9"},
		"a list of events":       {jsonKind, `[{"usage":{"total":3}},` + last + `]`, "units 9"},
		"a path into a list": {jsonKind, `[{"meta":{"usage":{"total":9}}},{"meta":{}}]`,
			"units 9"},
		"lines":              {"text/plain", lines, "units 9"},
		"lines, called so":   {"application/x-ndjson", lines, "units 9"},
		"values without \\n": {jsonKind, `{"usage":{"total":3}}` + last, "units 9"},
		"a sequence": {"application/json-seq",
			"\x1e{\"usage\":{\"total\":3}}\n\x1e" + last + "\n", "units 9"},
		"lines that broke":   {"text/plain", lines[:len(lines)-5], "units 500"},
		"a stream as text":   {"text/plain", "data: " + last + "\n\n", "units 9"},
		"no last newline":    {stream, "data: {}\n\ndata: " + last, "units 9"},
		"no empty lines":     {stream, "data: {}\ndata: " + last + "\ndata: [DONE]", "units 9"},
		"a mark before it":   {stream, mark + "data: " + last + "\n\n", "units 9"},
		"a list as an event": {stream, "data: [" + last + "]\n\n", "units 9"},
		"nothing at the end": {stream, "data: " + last + "\n\ndata: {\"usage\":{\"total\":0}}\n\n",
			"units 9"},
		"less at the end": {stream, "data: {\"usage\":{\"total\":90}}\n\n" +
			"data: " + last + "\n\n", "units 9"},
		"half a last line": {stream, "data: {}\n\ndata: " + last[:len(last)-3], "units 500"},
		"a page":           {"text/plain", "data comes later", "units 500"},
	} {
		for _, size := range []int{1, 5, 1000} {
			if got := quoted(answered(q, 200, c.kind, c.body, size).Costs); got != c.want {
				t.Errorf("%s, by %d: %s, want %s", name, size, got, c.want)
			}
		}
	}
}

// TestCutLines: the usage in lines that end early is incomplete, even if each of them is complete.
func TestCutLines(t *testing.T) {
	q := anthropic(t)
	o := q.Observe(200, http.Header{"Content-Type": {"text/plain"}})
	o.Write([]byte("{\"usage\":{\"input_tokens\":2,\"output_tokens\":1}}\n{}\n"))
	o.Cut()
	if got := quoted(o.Close().Costs); got != held {
		t.Errorf("%s, want %s", got, held)
	}
}

// TestFactsOfFacts: a rule on responses may use a fact that uses another fact, even if no price
// does.
func TestFactsOfFacts(t *testing.T) {
	table := parsed(t, `hosts: [a.test]
sources: {page: {status: verified, date: 2026-11, text: a page}}
split: {model: header("x-model"), class: 'model startsWith "small" ? "small" : "big"'}
buckets: {calls: {source: page}}
methods: {x.get: {route: GET /a, take: {calls: len(path) + 1}, source: page}}
refusals: [{status: 429, where: class == "small", kind: exhausted, bucket: calls, until: window}]`)
	for model, want := range map[string]costs.Kind{"small-2": costs.Exhausted,
		"large": costs.Throttled} {
		r := call(t, "GET /a", "")
		r.Header.Set("X-Model", model)
		q, err := table.Quote("x.get", r, nil, nil)
		must(t, err)
		if got := q.Observe(429, http.Header{}).Close().Refusal; got == nil || got.Kind != want {
			t.Errorf("%s: %v, want %s", model, got, want)
		}
	}
}

// TestStreamInBackground: if the stream of a background response ends before the response does, the
// usage is pending under its ID. A stream of any other response leaves nothing pending.
func TestStreamInBackground(t *testing.T) {
	q := quoteOf(t, shipped(t, "openai"), "POST /v1/responses",
		`{"model":"gpt-5-mini","input":"hi","stream":true}`)
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
