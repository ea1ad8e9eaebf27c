package costs_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
)

// anthropic returns the quote of a call to Anthropic.
func anthropic(t testing.TB) costs.Quote {
	t.Helper()
	table := shipped(t, "anthropic")
	const body = `{"model":"claude-sonnet-4-5","max_tokens":200}`
	q := quoteOf(t, table, "POST /v1/messages", body)
	if got := quoted(q.Costs); got != held {
		t.Fatalf("quoted %s", got)
	}
	return q
}

// answered returns the outcome of a response that arrives in pieces of the given size.
func answered(q costs.Quote, status int, kind, body string, size int,
	headers ...string) costs.Outcome {
	h := http.Header{"Content-Type": {kind}}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	o := q.Observe(status, h)
	for piece := range slices.Chunk([]byte(body), size) {
		if n, err := o.Write(piece); n != len(piece) || err != nil {
			panic("a piece was not taken")
		}
	}
	return o.Close()
}

const (
	usage = `{"type":"message","content":[],"usage":{"input_tokens":25,"output_tokens":15,` +
		`"cache_creation_input_tokens":100,"cache_read_input_tokens":1000}}`
	stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":" +
		"{\"input_tokens\":25,\"output_tokens\":1,\"cache_creation_input_tokens\":100," +
		"\"cache_read_input_tokens\":1000}}}\n\n" +
		"event: ping\ndata: {\"type\": \"ping\"}\n\n" +
		"event: content_block_delta\ndata: {\"delta\":{\"text\":\"\\\"usage\\\"\"}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":" +
		"{\"output_tokens\":15,\"input_tokens\":null}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	// maximum cost, booked without a reported usage
	held = "requests/sonnet-4 1, input/sonnet-4 1046, output/sonnet-4 200, money 6138"
	// reported usage: 25 + 100 tokens; (25 + 125 + 100) × 3 + 15 × 15 millionths of a dollar
	truth = "requests/sonnet-4 1, input/sonnet-4 125, output/sonnet-4 15, money 975"
)

func TestObserve(t *testing.T) {
	const more, less = `"output_tokens":150`, `"output_tokens":2`
	const delta = "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{"
	begin, _, _ := strings.Cut(stream, "event: message_delta")
	for _, c := range []struct {
		name, kind, body string
		want             string
		missing          string
	}{
		{"JSON", "application/json", usage, truth, ""},
		{"JSON of a charset", "application/json; charset=utf-8", usage, truth, ""},
		{"a stream", "text/event-stream; charset=utf-8", stream, truth, ""},
		{"a stream without names", "text/event-stream",
			strings.ReplaceAll(stream, "event: message", "x: "), truth, ""},
		{"a stream that was cut", "text/event-stream", stream[:strings.Index(stream, "event: ping")],
			held, "the end of the answer"},
		{"a stream that was cut after more than is held", "text/event-stream",
			strings.Replace(stream[:strings.Index(stream, "event: ping")], `"output_tokens":1,`,
				`"output_tokens":190,`, 1), held, "the end of the answer"},
		{"a stream cut before its usage", "text/event-stream", stream[:60], held,
			"usage.input_tokens usage.output_tokens"},
		{"no usage", "application/json", `{"content":[]}`, held,
			"usage.input_tokens usage.output_tokens"},
		{"half a usage", "application/json", `{"usage":{"output_tokens":7}}`,
			strings.Replace(held, "output/sonnet-4 200", "output/sonnet-4 7", 1),
			"usage.input_tokens"},
		{"usage of another type", "application/json", `{"usage":5}`, held,
			"usage.input_tokens usage.output_tokens"},
		{"a negative usage", "application/json", `{"usage":{"input_tokens":-5,"output_tokens":3}}`,
			"requests/sonnet-4 1, input/sonnet-4 1046, output/sonnet-4 3, money 6138",
			"usage.input_tokens"},
		{"a negative part of it", "application/json", strings.Replace(usage, "1000}", "-9000}", 1),
			"requests/sonnet-4 1, input/sonnet-4 125, output/sonnet-4 15, money 675", ""},
		{"words for numbers", "application/json",
			`{"usage":{"input_tokens":"5","output_tokens":1e300}}`, held,
			"is 1e+300: must be at most 1000000000000 units"},
		{"more than was held", "application/json",
			`{"usage":{"input_tokens":1,"output_tokens":100000}}`,
			"requests/sonnet-4 1, input/sonnet-4 1, output/sonnet-4 100000, money 1500003", ""},
		// if a key appears twice, either value may be the correct one
		{"a key that appears twice", "application/json", `{"usage":{"input_tokens":5,` + more + `,` +
			less + `}}`, held, "the answer cannot be used: usage.output_tokens appears twice"},
		{"usage that appears twice", "application/json",
			`{"usage":{"input_tokens":5,` + less + `},"usage":null}`, held,
			"the answer cannot be used: usage appears twice"},
		{"an id that appears twice", "application/json",
			`{"id":1,"usage":{"input_tokens":5,` + less + `},"id":1}`, held,
			"the answer cannot be used: id appears twice"},
		{"a key that appears twice in an event", "text/event-stream",
			begin + delta + more + `,` + less + "}}\n\n" + delta + less + "}}\n\n", held,
			"the answer cannot be used: usage.output_tokens appears twice"},
		// the value in the last event counts
		{"a key in two events", "text/event-stream",
			begin + delta + more + "}}\n\n" + delta + less + "}}\n\n",
			"requests/sonnet-4 1, input/sonnet-4 125, output/sonnet-4 2, money 780", ""},
		{"no JSON", "application/json", `{"usage":{"input_tok`, held,
			"usage.input_tokens usage.output_tokens"},
		{"a page", "text/html", "<html>", held, "usage.input_tokens usage.output_tokens"},
		{"nothing", "application/json", "", held, "usage.input_tokens usage.output_tokens"},
		{"too long", "application/json", strings.Repeat(" ", 9<<20) + usage, held,
			"the answer is longer than 8388608 bytes"},
		{"a long event", "text/event-stream", "data: " + strings.Repeat("x", 2<<20) + "\n\n", held,
			"an event is longer than 1048576 bytes"},
		{"a long event beside the usage", "text/event-stream",
			"data: " + strings.Repeat("x", 2<<20) + "\n\n" + stream, truth, ""},
	} {
		for _, size := range []int{7, 1000, 1 << 24} {
			if size == 7 && len(c.body) > 1<<20 {
				continue
			}
			out := answered(anthropic(t), 200, c.kind, c.body, size)
			missing := strings.Join(out.Missing, " ")
			if got := quoted(out.Costs); got != c.want || out.Refusal != nil ||
				!strings.Contains(missing, c.missing) || (missing == "") != (c.missing == "") {
				t.Errorf("%s: %s, missing %s, %v\nwant %s", c.name, got, missing, out.Refusal,
					c.want)
			}
		}
	}
}

// TestRefusedCalls checks the usage of refused calls, and the reasons. A monthly cap and a minute's
// throttle are both a 429.
func TestRefusedCalls(t *testing.T) {
	said := func(kind, more string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"It is <b>so</b>."` +
			more + `}}`
	}
	nothing := "requests/sonnet-4 1, input/sonnet-4 0, output/sonnet-4 0, money 0"
	for _, c := range []struct {
		status int
		body   string
		header []string
		want   costs.Refusal
	}{
		{429, said("rate_limit_error", ""), []string{"Retry-After", "30"}, costs.Refusal{
			Kind: costs.Throttled, Reason: "rate_limit_error", Message: "It is so.",
			Until: costs.Moment{After: 30 * time.Second}}},
		{429, said("rate_limit_error", ""), []string{"Retry-After", "-1"}, costs.Refusal{
			Kind: costs.Throttled, Reason: "rate_limit_error", Message: "It is so."}},
		{429, said("rate_limit_error", ""), []string{"Retry-After", "soon"}, costs.Refusal{
			Kind: costs.Throttled, Reason: "rate_limit_error", Message: "It is so.",
			Unread: "retry-after: soon"}},
		{429, said("rate_limit_error", `,"details":{"error_code":"enforced_spend_limit_reached"}`),
			nil, costs.Refusal{Kind: costs.Exhausted, Reason: "enforced_spend_limit_reached",
				Message: "It is so.", Bucket: "money", Window: true}},
		{429, said(`rate_limit_error","x":"enforced_spend_limit_reached`, ""), nil, costs.Refusal{
			Kind: costs.Throttled, Reason: "rate_limit_error", Message: "It is so."}},
		{401, said("authentication_error", ""), nil, costs.Refusal{Kind: costs.BadCredential,
			Reason: "authentication_error", Message: "It is so."}},
		{400, said("invalid_request_error", ""), nil, costs.Refusal{Kind: costs.Permanent,
			Reason: "invalid_request_error", Message: "It is so."}},
		{529, "overloaded", []string{"Retry-After", "Sun, 22 Nov 2026 15:04:05 GMT"}, costs.Refusal{
			Kind: costs.Throttled, Message: "overloaded", Until: costs.Moment{
				At: time.Date(2026, 11, 22, 15, 4, 5, 0, time.UTC)}}},
		{500, "", nil, costs.Refusal{Kind: costs.Transient}},
		{502, "<title>Bad gateway</title>", nil, costs.Refusal{Kind: costs.Transient,
			Message: "Bad gateway"}},
		{403, `{"type":"error","error":{"type":"permission_error","type":"x"}}`, nil, costs.Refusal{
			Kind:    costs.Permanent,
			Message: "the answer cannot be used: error.type appears twice"}},
	} {
		out := answered(anthropic(t), c.status, "application/json", c.body, 5, c.header...)
		if out.Refusal == nil || *out.Refusal != c.want || quoted(out.Costs) != nothing {
			t.Errorf("%d %s: %+v, took %s\nwant %+v", c.status, c.body, out.Refusal,
				quoted(out.Costs), c.want)
		}
	}
}

// TestReset: a bucket resets at the end of its longest calendar window, unless the list has another
// reset.
func TestReset(t *testing.T) {
	const day, month = "{units: 5, window: day, timezone: UTC}",
		"{units: 9, window: month, timezone: UTC}"
	for text, want := range map[string]string{
		"limits: [" + day + ", " + month + "]":                "month",
		"limits: [" + month + "], reset: week, timezone: UTC": "week",
		"limits: [{units: 9, window: 48h}]":                   "day", "note: none": "day",
	} {
		table := parsed(t, fmt.Sprintf(`hosts: [a.test]
sources: {page: {status: verified, date: 2026-11, text: a page}}
buckets: {money: {unit: usd/1000000, source: page, %s}}
methods: {x.get: {route: GET /a, cost: {money: 1}, source: page}}`, text))
		if got := table.Reset("money").Calendar; got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got := shipped(t, "anthropic").Reset("money"); got.Calendar+got.ZoneName() != "monthUTC" {
		t.Errorf("money of Anthropic resets each %s", got)
	}
}

// TestEachRule reads a response with each rule of the test's list.
func TestEachRule(t *testing.T) {
	table := all(t)
	chat := quoteOf(t, table, "POST /v1/chat", `{"model":"small-2","max":10}`)
	posts, users := quoteOf(t, table, "GET /v1/posts", ""), quoteOf(t, table, "GET /v1/users", "")
	const json = "application/json"
	for _, c := range []struct {
		name, want string
		out        costs.Outcome
	}{
		{"free by its status", "calls/x.chat.unknown 0, input/small 0, output/small 0, money 0",
			answered(chat, 304, "", "", 9)},
		{"free by a header", "calls/x.chat.unknown 0, input/small 0, output/small 0, money 0",
			answered(chat, 200, json, `{"usage":{"in":1,"out":1}}`, 9, "X-Cache", "hit")},
		{"a failed call", "calls/x.chat.unknown 1, input/small 0, output/small 0, money 0",
			answered(chat, 500, json, "{}", 9)},
		{"usage in two places", "calls/x.chat.unknown 1, input/small 7, output/small 9, money 7",
			answered(chat, 200, json, `{"usage":{"in":7,"out":1},"message":{"usage":{"out":9}}}`,
				9)},
		{"resources", "daily 6", answered(posts, 200, json,
			`{"data":[1,2,3],"includes":{"users":[1,2],"media":[1]}}`, 9)},
		{"one resource", "daily 1", answered(posts, 200, json, `{"data":{"id":1}}`, 9)},
		{"no resource", "daily 0", answered(posts, 200, json, `{"data":[],"meta":{}}`, 9)},
		{"one user", "daily 2", answered(users, 200, json, `{"data":{"id":1}}`, 9)},
		{"no list of users", "daily 0", answered(users, 200, json, `{}`, 9)},
		{"failed, of which the list says nothing", "daily 100", answered(posts, 500, json, `{}`, 9)},
	} {
		if got := quoted(c.out.Costs); got != c.want || c.out.Missing != nil {
			t.Errorf("%s: %s, missing %v; want %s", c.name, got, c.out.Missing, c.want)
		}
	}
	for _, body := range []string{`{"data":[{"id":1},`, `<html>`, `null`} {
		for _, q := range []costs.Quote{posts, users} {
			out := answered(q, 200, json, body, 9)
			if quoted(out.Costs) != "daily 100" || out.Missing == nil {
				t.Errorf("%s: %+v", body, out)
			}
		}
	}
	if out := answered(posts, 200, json, `{"meta":{}}`, 9); quoted(out.Costs) != "daily 100" ||
		!slices.Equal(out.Missing, []string{"answer.data"}) {
		t.Errorf("an answer without the list that is counted: %+v", out)
	}
	for body, want := range map[string]string{
		`{"errors":[{"message":"Throttled"}]}`: "throttled calls/x.chat.unknown", `{"errors":[]}`: "",
		`{"errors":"Throttled"}`: "", `[]`: "",
		// a rule without a status does not apply to a 2xx response
		`{"error":{"details":[{"metadata":{"unit":"1/d/p"}}]}}`: "",
	} {
		out, got := answered(chat, 200, json, body, 9), ""
		if r := out.Refusal; r != nil {
			got = fmt.Sprint(r.Kind, " ", r.Bucket)
		}
		if got != want {
			t.Errorf("%s is %q, want %q", body, got, want)
		}
	}
	out := answered(posts, 429, json, `{"left":{"money":12.9,"until":"2026-11-22T15:04:05Z"},`+
		`"error":{"details":[{"metadata":{"unit":"1/d/p","metric":"example.test/daily",`+
		`"since":"2026-11-01T07:00:00Z"}}]}}`, 9, "X-Limit", "50", "X-Remaining", "7",
		"X-Reset", "1795359845")
	r := out.Refusal
	if r.Kind != costs.Exhausted || r.Bucket != "daily" || r.Metric != "example.test/daily" ||
		r.Since.Format(time.RFC3339) != "2026-11-01T07:00:00Z" {
		t.Errorf("%+v", r)
	}
	// the bucket calls has parts, none of which is charged here: the only lesson is about money
	if len(out.Lessons) != 1 || out.Lessons[0].Bucket != "money" ||
		out.Lessons[0].Remaining != 12 ||
		out.Lessons[0].Window.Calendar != "day" || out.Lessons[0].Why != "left.money" {
		t.Errorf("%+v", out.Lessons)
	}
	out = answered(chat, 404, json, `{"error":{"code":"gone","type":"t"}}`, 9)
	if r := out.Refusal; r.Kind != costs.Permanent || r.As != "no chart" || r.Reason != "gone" {
		t.Errorf("%+v", r)
	}
}

// FuzzObserve looks for a response that frees units without reporting usage, or holds too much.
func FuzzObserve(f *testing.F) {
	f.Add(200, "text/event-stream", stream, uint8(3))
	f.Add(200, "application/json", usage, uint8(50))
	f.Add(429, "application/json", `{"error":{"type":"x","details":{"error_code":"y"}}}`, uint8(9))
	f.Fuzz(func(t *testing.T, status int, kind, body string, size uint8) {
		status = 200 + int(uint(status)%400)
		out := answered(anthropic(t), status, kind, body, int(size)+1)
		if len(out.Costs) != 4 || status >= 400 && out.Refusal == nil {
			t.Errorf("%+v", out)
		}
		for i, c := range out.Costs {
			if c.Units < 0 || c.Units > 1e12 || i == 0 && c.Units != 1 || c.Most != 0 {
				t.Errorf("%+v", c)
			}
		}
	})
}
