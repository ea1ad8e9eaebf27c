package standin

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noon is the time of the tests' accounts: a Wednesday.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// play starts a stand-in with a stopped clock.
func play(t *testing.T, name string, limits ...string) (*Server, string) {
	t.Helper()
	s, err := New(name)
	must(t, err)
	s.Now = func() time.Time { return noon }
	s.Limits, err = ParseLimits(limits...)
	must(t, err)
	must(t, s.Check())
	return s, start(t, s)
}

// start serves a stand-in until the test ends.
func start(t *testing.T, s http.Handler) (url string) {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close) // waits for the handlers
	return web.URL
}

// result is the response to a request. Without a response, the status is 0 and the body is the
// error. err is set if the body is cut off.
type result struct {
	status int
	header http.Header
	body   string
	err    error
}

// ask sends "METHOD path body" with every kind of credential. A header is "Name: value".
func ask(ctx context.Context, t *testing.T, url, request string, headers ...string) *http.Response {
	t.Helper()
	verb, target, _ := strings.Cut(request, " ")
	path, body, _ := strings.Cut(target, " ")
	r, err := http.NewRequestWithContext(ctx, verb, url+path, strings.NewReader(body))
	must(t, err)
	for _, h := range append([]string{"Authorization: Bearer k", "Anthropic-Version: 2023-06-01",
		"X-Api-Key: k", "X-Shopify-Access-Token: k", "X-Goog-Api-Key: k"}, headers...) {
		name, value, _ := strings.Cut(h, ": ")
		if name != "" {
			r.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return &http.Response{Body: io.NopCloser(strings.NewReader(err.Error()))}
	}
	return resp
}

func get(t *testing.T, url, request string, headers ...string) result {
	t.Helper()
	resp := ask(t.Context(), t, url, request, headers...)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return result{resp.StatusCode, resp.Header, string(body), err}
}

// status sends a request for a URL and returns the status and the body.
func status(t *testing.T, url string) (int, string) {
	t.Helper()
	r := get(t, url, "GET ")
	return r.status, r.body
}

// billed returns the billed units as JSON.
func (s *Server) billed() string {
	text, _ := json.Marshal(s.Counts().Units)
	return string(text)
}

const (
	chat = `POST /v1/chat/completions {"model":"gpt-x","messages":[{"role":"user","content":` +
		`"[[output:10]] tokens"}],"max_tokens":100}` // 94 bytes, so 24 tokens
	message = `POST /v1/messages {"model":"claude-x","messages":[{"role":"user","content":` +
		`"[[output:10]] tokens"}],"max_tokens":100}`
	products = `POST /admin/api/2026-01/graphql.json ` +
		`{"query":"{products(first:5){edges{node{title}}}}"}`
	report1 = `POST /v1beta/properties/1:runReport {"metrics":[{"name":"users"}],` +
		`"dateRanges":[{}],"returnPropertyQuota":true}`
	search = `POST /v1/places:searchText {"textQuery":"bakery"}`
)

// TestBills checks the units that refused and free requests take, by bucket. TestStandinsAgree in
// internal/costs compares the others with the price lists.
func TestBills(t *testing.T) {
	for _, test := range []struct {
		api, request, header string
		status               int
		units                string
		holds                string
	}{
		{"openai", `POST /v1/chat/completions {"model":"gpt-x"}`, "", 400, `{"requests/gpt-x":1}`,
			"messages"},
		{"openai", `POST /v1/chat/completions {"model":"GPT 1","messages":[1]}`, "", 404, `{}`,
			"model_not_found"},
		{"openai", `POST /v1/chat/completions {`, "", 400, `{}`, "invalid_request_error"},
		{"openai", "GET /v2", "", 404, `{}`, "Invalid URL"},
		{"openai", chat, "Authorization: ", 401, `{}`, "invalid_api_key"},

		{"anthropic", "POST /v1/messages/count_tokens" + message[len("POST /v1/messages"):], "", 200,
			`{}`, `{"input_tokens":25}`},
		{"anthropic", strings.Replace(message, `"max_tokens"`, `"max"`, 1), "", 400,
			`{"requests/claude-x":1}`, "invalid_request_error"},
		{"anthropic", strings.Replace(message, "claude-x", "Claude", 1), "", 404, `{}`,
			"not_found_error"},
		{"anthropic", message, "Anthropic-Version: ", 400, `{"requests/claude-x":1}`,
			"anthropic-version"},
		{"anthropic", "GET /v1/models", "", 200, `{}`, "claude-standin"},

		{"github", `POST /graphql {"query":"{viewer{login} rateLimit{cost remaining}}"}`, "", 200,
			`{"graphql":1,"graphql_points":1}`, `"rateLimit":{"cost":1,"remaining":4999}`},
		{"github", `POST /graphql {"query":"{viewer{"}`, "", 200, `{}`, "syntax error"},

		{"shopify", strings.Replace(products, "first:5", "first:999", 1), "", 200, `{}`,
			"MAX_COST_EXCEEDED"},
		{"shopify", "GET /admin", "", 404, `{}`, "Not Found"},

		{"google-analytics", `POST /v1beta/properties/1:runReport {}`, "", 400, `{}`,
			"INVALID_ARGUMENT"},
		{"google-analytics", `POST /v1beta/properties/1:walk {}`, "", 404, `{}`, "NOT_FOUND"},

		{"google-maps", search, "", 400, `{}`, "FieldMask is a required parameter"},

		{"x", "GET /2/tweets/search/recent?max_results=4", "", 400, `{}`, "max_results"},
		{"x", "GET /3", "", 404, `{}`, "Not Found Error"},

		{"generic", "GET /any?cost=-7", "", 400, `{"requests":1}`, "cost"},
	} {
		s, url := play(t, test.api)
		a := get(t, url, test.request, test.header)
		if a.status != test.status || s.billed() != test.units ||
			!strings.Contains(a.body, test.holds) {
			t.Errorf("%s %s: %d %s, want %d %s %s:\n%s", test.api, test.request, a.status,
				s.billed(), test.status, test.units, test.holds, a.body)
		}
		if a.body != "" && !json.Valid([]byte(a.body)) {
			t.Errorf("%s %s: not JSON: %s", test.api, test.request, a.body)
		}
		if c := s.Counts(); c.Requests != 1 || c.Denied != 0 || c.Open != 0 {
			t.Errorf("%s %s: %+v", test.api, test.request, c)
		}
	}
}

func streamed(request string) string {
	return strings.TrimSuffix(request, "}") + `,"stream":true}`
}

// TestConcurrent: a limit without a window bounds the number of concurrent requests.
func TestConcurrent(t *testing.T) {
	s, url := play(t, "google-analytics", "concurrent=1")
	s.Faults = []string{"hang@1"}
	ctx, cancel := context.WithCancel(t.Context())
	var hanging sync.WaitGroup
	hanging.Go(func() { ask(ctx, t, url, report1).Body.Close() })
	for s.Counts().Units["tokens/core.1"] == 0 {
		time.Sleep(time.Millisecond)
	}
	if a := get(t, url, report1); a.status != 429 || !strings.Contains(a.body, "concurrent") {
		t.Errorf("%d %s", a.status, a.body)
	}
	cancel()
	hanging.Wait()
	for s.Counts().Open > 0 {
		time.Sleep(time.Millisecond)
	}
	if a := get(t, url, report1); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}
