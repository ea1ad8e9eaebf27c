package costs_test

import (
	"net/http"
	"testing"
)

// TestUsageInOtherForms: usage is found in a list, in lines of JSON and in streams without an end,
// whatever the Content-Type says.
func TestUsageInOtherForms(t *testing.T) {
	table := parsed(t, listOf("", `
  things.read:
    route: GET /v1/things
    source: page
    hold: {units: {estimate: 10, most: 500}}
    usage: [usage, "*.meta.usage"]
    settle: {units: "max(usage.total, usage.parts ?? 0)"}`))
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

// TestCutLines: lines that end early are not the whole truth, even where each of them is whole.
func TestCutLines(t *testing.T) {
	q := anthropic(t)
	o := q.Observe(200, http.Header{"Content-Type": {"text/plain"}})
	o.Write([]byte("{\"usage\":{\"input_tokens\":2,\"output_tokens\":1}}\n{}\n"))
	o.Cut()
	if got := quoted(o.Close().Costs); got != held {
		t.Errorf("%s, want %s", got, held)
	}
}
