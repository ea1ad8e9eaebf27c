package costs_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestTwice: if a key appears twice, either value may be right, so the most that the call can take
// is booked.
func TestTwice(t *testing.T) {
	const more, less = `"output_tokens":150`, `"output_tokens":2`
	const twice = "the answer cannot be used: usage.output_tokens appears twice"
	event := func(data string) string {
		return "event: message_delta\ndata: {\"type\":\"message_delta\"," + data + "}\n\n"
	}
	begin, _, _ := strings.Cut(stream, "event: message_delta")
	for _, c := range []struct{ kind, body, want, missing string }{
		{"json", `{"usage":{"input_tokens":5,` + more + `,` + less + `}}`, held, twice},
		{"json", `{"usage":{"input_tokens":5,` + less + `},"usage":null}`, held,
			strings.Replace(twice, ".output_tokens", "", 1)},
		{"json", `{"id":1,"usage":{"input_tokens":5,` + less + `},"id":1}`, held,
			strings.Replace(twice, "usage.output_tokens", "id", 1)},
		{"stream", begin + event(`"usage":{`+more+`,`+less+`}`) + event(`"usage":{`+less+`}`), held,
			twice},
		// in two events, the last value is the truth
		{"stream", begin + event(`"usage":{`+more+`}`) + event(`"usage":{`+less+`}`),
			"requests/sonnet-4 1, input/sonnet-4 125, output/sonnet-4 2, money 780", ""},
	} {
		kind := map[string]string{"json": "application/json", "stream": "text/event-stream"}[c.kind]
		out := answered(anthropic(t), 200, kind, c.body, 99)
		if got, missing := quoted(out.Costs), strings.Join(out.Missing, " "); got != c.want ||
			missing != c.missing {
			t.Errorf("%s: %s, missing %q\nwant %s", c.body, got, missing, c.want)
		}
	}
}

// listOf is a price list with one bucket, units.
func listOf(keys, methods string) string {
	return `hosts: [api.example.test]
credential: bearer
sources: {page: {status: official, date: 2026-11, text: the price page}}
buckets: {units: {}}` + keys + `
methods:` + methods
}

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
	r := call(t, "GET /v1/things", "")
	q, err := table.Quote("things.read", r, nil, nil)
	must(t, err)
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

// TestZerosThatAreLeftOut: a number that an upstream leaves out when it is 0 is 0, as long as the
// object it belongs to is there.
func TestZerosThatAreLeftOut(t *testing.T) {
	table := parsed(t, listOf(`
zeros: [quota.used, quota.left, "rows.*.quota.used"]
learn:
  - {bucket: units, remaining: {path: quota.left}}`, `
  things.read:
    route: GET /v1/things
    source: page
    hold: {units: {estimate: 10, most: 500}}
    settle: {units: "answer.quota.used + sum(answer.rows ?? [], .quota.used)"}`))
	r := call(t, "GET /v1/things", "")
	q, err := table.Quote("things.read", r, nil, nil)
	must(t, err)
	for body, want := range map[string]string{
		`{"quota":{"left":5}}`: "units 0 5", `{"quota":{"used":3}}`: "units 3 0",
		`{"quota":{}}`: "units 0 0",
		`{"quota":{},"rows":[{"quota":{}},{"quota":{"used":2}}]}`: "units 2 0",
		`{}`: "units 500", `{"quota":null}`: "units 500", `{"quota":{},"rows":[{}]}`: "units 500 0",
	} {
		out := answered(q, 200, "application/json", body, 1000)
		got := quoted(out.Costs)
		for _, l := range out.Lessons {
			got += fmt.Sprintf(" %d", l.Remaining)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// TestLessonsInOtherForms: what is left may be in a field of the IETF's draft, in one text with the
// limit, follow from what is used, or be computed.
func TestLessonsInOtherForms(t *testing.T) {
	for _, c := range []struct{ rule, header, value, want string }{
		{"remaining: ratelimit, reset: {header: ratelimit, as: seconds}", "RateLimit",
			`"api";r=999;t=295`, "999 of 0 in 4m55s"},
		{"remaining: ratelimit, reset: {header: ratelimit, as: seconds}, limit: ratelimit",
			"RateLimit", "limit=100, remaining=50, reset=30", "50 of 100 in 30s"},
		{"remaining: {header: ratelimit, policy: day}", "RateLimit",
			`"burst";r=9;t=1, "day";r=500;t=60`, "500 of 0 in 0s"},
		{"remaining: ratelimit", "RateLimit", `"burst";r=9;t=1, "day";r=500;t=60`,
			`unread ratelimit: "burst";r=9;t=1, "day";r=500;t=60`},
		{"remaining: x-calls, limit: x-calls", "X-Calls", "32/40", "8 of 40 in 0s"},
		{"used: x-used, limit: 1200", "X-Used", "200", "1000 of 1200 in 0s"},
		{"used: x-used, limit: 1200", "X-Used", "1300", "0 of 1200 in 0s"},
		{"used: x-used, limit: 1200", "X-Other", "1300", ""},
		{`remaining: '2000 - int(split(header("x-usage"), ",")[1])'`, "X-Usage", "15,150",
			"1850 of 0 in 0s"},
		{`remaining: '2000 - int(split(header("x-usage"), ",")[1])'`, "X-Other", "15,150", ""},
		{"reset: {path: error.*.wait, as: duration}", "X", "", "-1 of 0 in 37s"},
	} {
		table := parsed(t, listOf("\nlearn:\n  - {bucket: units, "+c.rule+"}", `
  things.read: {route: GET /v1/things, source: page, take: {units: 1}}`))
		q := quoteOf(t, table, "GET /v1/things", "")
		out := answered(q, 200, "application/json", `{"error":[{"a":1},{"wait":"37s"}]}`, 9,
			c.header, c.value)
		got := ""
		for _, l := range out.Lessons {
			got = fmt.Sprintf("%d of %d in %v", l.Remaining, l.Limit, l.Reset.After)
		}
		for _, text := range out.Unread {
			got += "unread " + text
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.rule, got, c.want)
		}
	}
}

// TestTotalOfZero: a total that is 0 beside its parts is not the truth.
func TestTotalOfZero(t *testing.T) {
	table := shipped(t, "openai")
	const body = `{"model":"gpt-4o-mini","messages":[],"max_completion_tokens":9}`
	q := quoteOf(t, table, "POST /v1/chat/completions", body)
	for usage, want := range map[string]int64{
		`"prompt_tokens":8,"completion_tokens":9,"total_tokens":0`:  17,
		`"prompt_tokens":8,"completion_tokens":9`:                   17,
		`"prompt_tokens":8,"completion_tokens":9,"total_tokens":20`: 20,
		`"prompt_tokens":0,"completion_tokens":0,"total_tokens":0`:  0,
	} {
		out := answered(q, 200, "application/json", `{"usage":{`+usage+`}}`, 99)
		if got := out.Costs[1]; got.Units != want {
			t.Errorf("%s: %d of %s, want %d", usage, got.Units, got.Bucket, want)
		}
	}
}
