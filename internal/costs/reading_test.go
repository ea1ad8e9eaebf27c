package costs_test

import (
	"strings"
	"testing"
)

// TestTwice: of a key that appears twice the upstream may have meant either, so the more is booked.
func TestTwice(t *testing.T) {
	const more, less = `"output_tokens":150`, `"output_tokens":2`
	event := func(data string) string {
		return "event: message_delta\ndata: {\"type\":\"message_delta\"," + data + "}\n\n"
	}
	begin, _, _ := strings.Cut(stream, "event: message_delta")
	const want = "requests/sonnet-4 1, input/sonnet-4 5, output/sonnet-4 150, money 2265"
	const streamed = "requests/sonnet-4 1, input/sonnet-4 125, output/sonnet-4 150, money 3000"
	for _, c := range []struct{ kind, body, want, missing string }{
		{"json", `{"usage":{"input_tokens":5,` + more + `,` + less + `}}`, want, ""},
		{"json", `{"usage":{"input_tokens":5,` + less + `,` + more + `}}`, want, ""},
		{"json", `{"usage":{"input_tokens":5,` + less + `},"usage":{"input_tokens":5,` + more +
			`}}`, want, ""},
		{"json", `{"usage":{"input_tokens":5,` + more + `},"usage":{"input_tokens":5,` + less +
			`}}`, want, ""},
		{"json", `{"usage":{"input_tokens":5,` + more + `},"usage":null}`, held,
			"usage.input_tokens usage.output_tokens"},
		{"json", `{"id":1,"usage":{"input_tokens":5,` + more + `},"id":2}`, want, ""},
		{"json", `{"usage":{"input_tokens":5,` + less + `,` + more + `,` + less + `}}`, held,
			"usage.input_tokens usage.output_tokens"},
		{"stream", begin + event(`"usage":{`+more+`,`+less+`}`), streamed, ""},
		{"stream", begin + event(`"usage":{`+less+`,`+more+`}`), streamed, ""},
		{"stream", begin + event(`"usage":{`+less+`},"usage":{`+more+`}`), streamed, ""},
		{"stream", begin + event(`"usage":{`+less+`}`) + event(`"usage":{`+more+`}`), streamed, ""},
		{"stream", begin + event(`"usage":{`+more+`}`) + event(`"usage":{`+less+`}`), streamed, ""},
	} {
		kind := map[string]string{"json": "application/json", "stream": "text/event-stream"}[c.kind]
		out := answered(anthropic(t), 200, kind, c.body, 99)
		if got, missing := quoted(out.Costs), strings.Join(out.Missing, " "); got != c.want ||
			missing != c.missing {
			t.Errorf("%s: %s, missing %q\nwant %s", c.body, got, missing, c.want)
		}
	}
}
