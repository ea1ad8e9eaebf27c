package standin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzServe: whatever is sent, a stand-in answers JSON or events, and never takes anything back.
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
