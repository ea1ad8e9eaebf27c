package standin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestShopifyPoints checks the maximum points of a query, and the points that it takes for the rows
// it finds. TestPointsAgree in internal/costs compares the points of GitHub.
func TestShopifyPoints(t *testing.T) {
	for _, test := range []struct {
		query             string
		requested, actual int64
	}{
		{"{viewer{login}}", 1, 1},
		{"query Q($n:Int=50){a(first:$n){nodes{id b(last:$m){totalCount}}}}", 652, 20},
		{"{a(first:10){nodes{... on T @include(if:true){id}}}}", 12, 5},
		{"mutation{x(input:{a:[1,-2.5e3,\"}\",null,true,ENUM]}){id} y{id}}", 20, 20},
		{"# note\n{a:b(x:\"\"\"block \"quoted\" { \"\"\"){c:d}}", 1, 1},
	} {
		op, err := parseGraph(graphRequest{Query: test.query, Variables: map[string]any{"m": 10.0}})
		must(t, err)
		requested, actual := shopifyPoints(op, 1<<62), shopifyPoints(op, 3)
		if requested != test.requested || actual != test.actual {
			t.Errorf("%s: %d requested, %d actual", test.query, requested, actual)
		}
	}
}

func TestGraphErrors(t *testing.T) {
	for _, query := range []string{"", "{", "{}}", "{a(", "{a(b:)}", "{a{b}", "{...F}", "{a b:}",
		"query A{a} query B{b}", "subscription{a}", "{a @}", "fragment F on T{...F} {...F}", "{\x00}",
		"{a(x:[[[[" + strings.Repeat("[", 100), strings.Repeat("{a", 100),
		"fragment A on T{...B ...B} fragment B on T{...A ...A} {...A}", `{a(b:"x)}`, "{a(b:$)}"} {
		if _, err := parseGraph(graphRequest{Query: query}); err == nil {
			t.Errorf("%q: %v", query, err)
		}
	}
	op, err := parseGraph(graphRequest{Query: "query A{a} query B{b}", OperationName: "B"})
	if err != nil || op.fields[0].name != "b" {
		t.Errorf("%+v %v", op, err)
	}
}

// FuzzServe: the response to any request is JSON or a stream of events, and the billed units never
// decrease.
func FuzzServe(f *testing.F) {
	for _, request := range []string{chat, streamed(chat), message, streamed(message), products,
		report1, search, "GET /2/tweets?ids=1,2", "GET /any?cost=7", "GET /repos/o/r",
		`POST /graphql {"query":"{viewer{login}}"}`} {
		verb, target, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(target, " ")
		f.Add(verb, path, body)
	}
	f.Fuzz(func(t *testing.T, verb, path, body string) {
		at, err := url.Parse(path)
		if err != nil || at.Path == "" || strings.HasPrefix(at.Path, "/standin/") {
			return
		}
		for _, name := range Names() {
			s, err := New(name)
			must(t, err)
			r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body))
			r.Method, r.URL = verb, at
			for _, header := range strings.Fields("X-Api-Key X-Goog-Api-Key X-Goog-FieldMask " +
				"X-Shopify-Access-Token Anthropic-Version") {
				r.Header.Set(header, "k")
			}
			r.Header.Set("Authorization", "Bearer k")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			events := strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream")
			if text := w.Body.Bytes(); len(text) > 0 && !events && !json.Valid(text) {
				t.Errorf("%s: %d %s", name, w.Code, text)
			}
			for bucket, units := range s.Counts().Units {
				if units < 1 {
					t.Errorf("%s: %d of %s", name, units, bucket)
				}
			}
		}
	})
}
