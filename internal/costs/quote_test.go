package costs_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// all is the list of testdata with each key.
func all(t testing.TB) *costs.Table {
	t.Helper()
	return parsed(t, read(t, "all-keys.yaml"))
}

// parsed returns the table of a list.
func parsed(t testing.TB, text string) *costs.Table {
	t.Helper()
	list, err := costs.ParseList("costs.yaml", []byte(text), nil)
	must(t, err)
	return list.Usual()
}

// shipped returns the shipped table of an upstream.
func shipped(t testing.TB, name string) *costs.Table {
	t.Helper()
	table, err := costs.Shipped().Upstream(name)
	must(t, err)
	return table
}

// quoteOf prices a request, such as "GET /a", with a body.
func quoteOf(t testing.TB, table *costs.Table, target, body string) costs.Quote {
	t.Helper()
	r := call(t, target, body)
	r.Header.Set("Content-Type", "application/json")
	method, err := table.Method(r)
	must(t, err)
	q, err := table.Quote(method, r, []byte(body), nil)
	must(t, err)
	return q
}

// call is a request with a body.
func call(t testing.TB, target, body string) *http.Request {
	t.Helper()
	verb, path, _ := strings.Cut(target, " ")
	r, err := http.NewRequest(verb, "https://api.example.test"+path, strings.NewReader(body))
	must(t, err)
	return r
}

// quoted is costs with their worst cases: "input/small 40, output/small 50 to 100".
func quoted(costs []quota.Cost) string {
	var parts []string
	for _, c := range costs {
		text := fmt.Sprint(c.Bucket, " ", c.Units)
		if c.Most != 0 {
			text += fmt.Sprint(" to ", c.Most)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// learned knows one quantile of one bucket, of calls that were priced in whatever way.
func learned(bucket string, percentile int, units int64) costs.Learned {
	return func(_, b string, p int) (int64, bool) { return units, b == bucket && p == percentile }
}

// A form in parts is priced by its fields; one that two readers could read in two ways is not.
func TestQuoteOfForm(t *testing.T) {
	const field = "--b\r\nContent-Disposition: form-data; name=%s\r\n\r\n%s\r\n"
	table := all(t)
	for model, want := range map[string]string{
		"small-2": "calls/x.chat.unknown 1, input/small 49, output/small 100, money 25",
		"a\r\n" + fmt.Sprintf(field, "max", "1") + "--c": "", // max appears twice
	} {
		body := fmt.Sprintf(field, "model", model) + fmt.Sprintf(field, "max", "100") +
			fmt.Sprintf(field, "image; filename=a.png", "\x89PNG") + "--b--\r\n"
		r := call(t, "POST /v1/chat", body)
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		q, err := table.Quote("x.chat", r, []byte(body), nil)
		if got := quoted(q.Costs); got != want || (err == nil) == (want == "") {
			t.Errorf("%.20q: %s, %v", model, got, err)
		}
	}
}

func TestQuote(t *testing.T) {
	table := all(t)
	const chat = `{"model":"small-2","max":100,"x":"....."}` // 43 bytes
	for _, c := range []struct {
		method, target, body string
		learned              costs.Learned
		want                 string
	}{
		{"x.chat", "POST /v1/t/Acme Ltd/chat", chat, nil,
			"calls/x.chat.acme-ltd 1, input/small 11, output/small 100, money 25"},
		{"x.chat", "POST /v1/chat", chat, learned("output/small", 95, 30),
			"calls/x.chat.unknown 1, input/small 11, output/small 30 to 100, money 25"},
		{"x.chat", "POST /v1/chat", chat, learned("output/small", 95, 300),
			"calls/x.chat.unknown 1, input/small 11, output/small 100, money 25"},
		{"x.chat", "POST /v1/chat", chat, learned("money", 95, 0),
			"calls/x.chat.unknown 1, input/small 11, output/small 100, money 1 to 25"},
		// what is certain comes before what was learned
		{"x.chat", "POST /v1/chat", `{"model":"small-2","max":100,"least":60}`,
			learned("output/small", 95, 30),
			"calls/x.chat.unknown 1, input/small 10, output/small 90 to 100, money 25"},
		{"x.chat", "POST /v1/chat", `{"model":"small-2","max":100,"least":600}`,
			learned("output/small", 95, 30),
			"calls/x.chat.unknown 1, input/small 11, output/small 100, money 25"},
		// without max, the worst case, and the list's cap once something is known
		{"x.chat", "POST /v1/chat", `{"model":"Other Model/7"}`, nil,
			"calls/x.chat.unknown 1, input/other 7, output/other 4096, money 61440"},
		{"x.chat", "POST /v1/chat", `{"model":"Other Model/7"}`, learned("output/other", 95, 3000),
			"calls/x.chat.unknown 1, input/other 7, output/other 1000 to 4096, money 61440"},
		{"x.chat", "POST /v1/chat", `{"max":0}`, nil,
			"calls/x.chat.unknown 1, input/unknown 3, output/unknown 0, money 0"},
		// no body at all, as of a GET
		{"x.chat", "POST /v1/chat", "", nil,
			"calls/x.chat.unknown 1, input/unknown 0, output/unknown 4096, money 61440"},
		{"x.list", "GET /v1/list?ids=a,b,c&id=d&id=e", "", nil, "calls/x.list.unknown 3"},
		{"x.put", "PUT /v1/put", "", nil, "daily 2"},
		{"x.posts", "GET /v1/posts", "", nil, "daily 100"},
	} {
		path := strings.ReplaceAll(c.target, "Acme Ltd", "Acme%20Ltd")
		q, err := table.Quote(c.method, call(t, path, c.body), []byte(c.body), c.learned)
		if got := quoted(q.Costs); err != nil || got != c.want {
			t.Errorf("%s %s takes %s, %v; want %s", c.target, c.body, got, err, c.want)
		}
		if q.Known != (c.method == "x.put") {
			t.Errorf("%s known: %v", c.method, q.Known)
		}
	}
	q, err := table.Quote("x.chat", call(t, "POST /v1/chat", chat), []byte(chat), nil)
	if err != nil || q.Lapse != quota.LapseCharge || q.TTL != 5*time.Minute {
		t.Errorf("lapse %s after %v, %v", q.Lapse, q.TTL, err)
	}
	for method, want := range map[string]bool{"x.chat": true, "x.list": false, "x.put": false,
		"x.posts": false, "none": false} {
		if got := table.NeedsBody(method); got != want {
			t.Errorf("%s needs its body: %v", method, got)
		}
	}
}

// TestQuoteRefuses: a request that cannot be priced is refused.
func TestQuoteRefuses(t *testing.T) {
	table := all(t)
	for body, want := range map[string]string{
		"model=small":                      "cannot price x.chat: its body cannot be read: it is not JSON",
		"{":                                "not JSON",
		`{"model":"a","model":"b"}`:        "its body cannot be read: model appears twice",
		`{"max":-5}`:                       "cannot price x.chat: its price depends on max in the body,",
		`{"max":"many"}`:                   "depends on max in the body",
		`{"max":1e300}`:                    "it is no number from 0 to 1,000,000,000,000",
		`{"max":[1]}`:                      "depends on max in the body",
		strings.Repeat(" ", 32<<20) + "{}": "33554434 bytes: 33554432 at most",
	} {
		_, err := table.Quote("x.chat", call(t, "POST /v1/chat", ""), []byte(body), nil)
		refused, ok := errors.AsType[*costs.PriceError](err)
		if !ok || !errors.Is(err, quota.ErrUnpriced) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, %v; want %s", body, err, refused, want)
		}
	}
	r := call(t, "POST /v1/chat", "{}")
	r.Header.Set("Content-Encoding", "gzip")
	if _, err := table.Quote("x.chat", r, []byte("{}"), nil); err == nil ||
		!strings.Contains(err.Error(), "its body is packed") {
		t.Error(err)
	}
	if _, err := table.Quote("x.none", r, nil, nil); !errors.Is(err, quota.ErrUnpriced) {
		t.Error(err)
	}
}

// TestPriced: calls are alike if the facts that their price depends on are the same. A name that is
// too long for a label keeps its difference.
func TestPriced(t *testing.T) {
	table := all(t)
	long := strings.Repeat("long", 20)
	names := map[string]string{}
	for _, model := range []string{"small-2", "small-3", "Other Model/7", "", long + "a", long + "b"} {
		body := fmt.Sprintf(`{"model":%q,"max":100}`, model)
		q := quoteOf(t, table, "POST /v1/chat", body)
		if other, ok := names[q.Priced]; ok || len(q.Priced) > 63 {
			t.Errorf("%q is priced as %q, and so is %q", model, q.Priced, other)
		}
		names[q.Priced] = model
		if err := (quota.Labels{quota.LabelPriced: q.Priced}).Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestEstimateAndWorstCase: a quantile alone is no bound while no usage is known, and no more is
// held than a call can take.
func TestEstimateAndWorstCase(t *testing.T) {
	list, body := read(t, "all-keys.yaml"), `{"max":100}`
	text := strings.Replace(list, "input: len(body) / 4", "input: p95", 1)
	_, err := parsed(t, text).Quote("x.chat", call(t, "POST /v1/chat", body), []byte(body), nil)
	if err == nil || !strings.Contains(err.Error(), "p95 is not a finite number") {
		t.Error(err)
	}
	text = strings.Replace(list, `"min(body.max ?? 4096, p95, 1000)"`, "1000", 1)
	got := quoted(quoteOf(t, parsed(t, text), "POST /v1/chat", body).Costs)
	if !strings.Contains(got, "output/unknown 100, ") {
		t.Error(got)
	}
}

// TestTimedOut: a call that timed out at a gateway is charged its maximum, although less was held.
func TestTimedOut(t *testing.T) {
	little := func(string, string, int) (int64, bool) { return 1, true }
	for upstream, c := range map[string]struct{ target, body string }{
		"anthropic":    {"POST /v1/messages", `{"model":"claude-haiku-4-5","max_tokens":900}`},
		"azure-openai": {"POST /openai/deployments/gpt-5/chat/completions", `{}`},
		"bedrock":      {"POST /model/amazon.nova-pro-v1:0/converse", `{}`},
		"gemini":       {"POST /v1beta/models/gemini-2.5-flash:generateContent", `{}`},
		"mistral":      {"POST /v1/chat/completions", `{"model":"mistral-large-latest"}`},
		"openai":       {"POST /v1/chat/completions", `{"model":"gpt-5","messages":[]}`},
		"openrouter":   {"POST /api/v1/chat/completions", `{"model":"openai/gpt-4o"}`},
		"shopify":      {"POST /admin/api/2026-10/graphql.json", `{"query":"{shop{name}}"}`},
	} {
		r := call(t, c.target, c.body)
		table := shipped(t, upstream)
		method, err := table.Method(r)
		must(t, err)
		q, err := table.Quote(method, r, []byte(c.body), little)
		must(t, err)
		settled := q.Observe(http.StatusRequestTimeout, http.Header{}).Close().Costs
		estimated := false
		for i, held := range q.Costs {
			estimated = estimated || held.Most > 0
			if settled[i].Units != max(held.Units, held.Most) {
				t.Errorf("%s: %s, settled as %s", upstream, quoted(q.Costs), quoted(settled))
			}
		}
		if !estimated {
			t.Errorf("%s: nothing is estimated: %s", upstream, quoted(q.Costs))
		}
	}
}

// TestPartNames: a fact of a request becomes a valid name of a part.
func TestPartNames(t *testing.T) {
	table := all(t)
	for _, tenant := range []string{"a", "A", "ä", "../..", "%2e", ":", "_x",
		strings.Repeat("x", 99)} {
		r := call(t, "POST /v1/chat", "{}")
		r.URL.Path, r.URL.RawPath = "/v1/t/"+tenant+"/chat", ""
		q, err := table.Quote("x.chat", r, []byte("{}"), nil)
		must(t, err)
		_, part, _ := strings.Cut(q.Costs[0].Bucket, "/")
		if part == "" || len(part) > 63 ||
			strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" ||
			slices.Contains([]byte("._-"), part[0]) {
			t.Errorf("%q is %q", tenant, part)
		}
	}
}
