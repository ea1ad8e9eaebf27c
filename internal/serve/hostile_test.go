package serve

import (
	"crypto/sha256"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/limit"
	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/report"
)

// form is a body from which a form could be read.
const form = "--x\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nmade-up\r\n--x--\r\n"

// A response depends on the address alone: other parts of a request, such as its body, do not
// change the responses to later requests.
func TestAnswersOfOthers(t *testing.T) {
	t.Parallel()
	s := filled(t)
	s.wants(s.get("/v1/regions", "Accept", "json"), 200)
	if got := s.get("/v1/regions").header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type is %q after a request that asked for another", got)
	}
	s.send(http.MethodGet, "/search", form, "Content-Type", "multipart/form-data; boundary=x")
	if body := s.get("/search").body; strings.Contains(body, "made-up") {
		t.Error("a search shows what the request before it sent in its body")
	}
}

// Responses that need a token differ from public ones, also in their ETags. Requests with a token
// or an API key get an ETag, too.
func TestPrivateAnswersAreApart(t *testing.T) {
	t.Parallel()
	s := newEnv(t, func(s *Server) {
		s.Public, s.Tokens = true, tokens(t, "a-secret-token-0")
		guarded(limit.Rule{Policy: perHour("all", 1000), By: limit.ByClient})(s)
		known := &limit.Known{Keys: map[limit.Digest]limit.APIKey{
			sha256.Sum256([]byte("key")): {Name: "key"}}}
		s.Guard.Caller, s.Guard.Stats = known.Of, &limit.Stats{}
	})
	for range 3 {
		own := s.get("/", "Authorization", "Bearer a-secret-token-0")
		s.wants(own, 200, "Limits of this server")
		for _, other := range []string{"", "Bearer key", "Bearer wrong"} {
			r := s.get("/", "Authorization", other)
			if strings.Contains(r.body, "Limits of this server") ||
				r.header.Get("ETag") == own.header.Get("ETag") {
				t.Errorf("%q: shown what needs the token", other)
			}
		}
	}
	tag := s.get("/v1/regions").header.Get("ETag")
	for _, who := range []string{"Bearer key", "Bearer a-secret-token-0"} {
		r := s.get("/v1/regions", "Authorization", who, "If-None-Match", tag)
		if r.status != http.StatusNotModified {
			t.Errorf("%s: %d %v", who, r.status, r.header)
		}
	}
}

// A page of another site cannot make a browser post, not even without a content type. Other
// programs can post.
func TestOtherSitesCannotPost(t *testing.T) {
	t.Parallel()
	for _, public := range []bool{false, true} {
		s := newEnv(t, func(s *Server) { s.Public = public })
		for path, body := range map[string]string{"/v1/links": `{"to":"/charts/US"}`,
			"/v1/decisions": `{"policy":"rlaas","key":"a"}`} {
			s.wants(s.send(http.MethodPost, path, body, "Origin", "http://evil.example"), 403)
			s.wants(s.send(http.MethodPost, path, body, "Sec-Fetch-Site", "cross-site"), 403)
		}
		s.wants(s.send(http.MethodPost, "/v1/links", `{"to":"/charts/US"}`, "Origin", s.url), 201)
	}
}

// Pages of other sites may send an API key to read a public API, and read how much is left. They
// may not post, and may not read a private server.
func TestPreflight(t *testing.T) {
	t.Parallel()
	ask := func(s *env, path, method string) reply {
		s.routes = nil // not in the document
		return s.send(http.MethodOptions, path, "", "Origin", "https://elsewhere.example",
			"Access-Control-Request-Method", method,
			"Access-Control-Request-Headers", "x-api-key")
	}
	s := newEnv(t, func(s *Server) { s.Public = true })
	for _, method := range []string{"GET", "HEAD"} {
		r := ask(s, "/v1/charts/US", method)
		if s.wants(r, 204); r.header.Get("Access-Control-Allow-Origin") != "*" ||
			r.header.Get("Access-Control-Allow-Methods") != "GET, HEAD" ||
			r.header.Get("Access-Control-Max-Age") != "7200" ||
			!strings.Contains(r.header.Get("Access-Control-Allow-Headers"), "X-API-Key") {
			t.Errorf("%s: %v", method, r.header)
		}
	}
	shown := s.get("/v1/regions").header.Get("Access-Control-Expose-Headers")
	for _, name := range []string{"ETag", "Retry-After", "RateLimit-Policy",
		"X-RateLimit-Remaining"} {
		if !strings.Contains(shown, name) {
			t.Errorf("%s is hidden: %s", name, shown)
		}
	}
	private := newEnv(t, nil)
	for _, r := range []reply{ask(s, "/v1/links", "POST"), ask(s, "/v1/decisions", "POST"),
		ask(s, "/log", "GET"), ask(private, "/v1/charts/US", "GET")} {
		if r.status < 400 || r.header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("allowed: %d %v", r.status, r.header)
		}
	}
}

// Every error of the API is problem+json.
func TestProblems(t *testing.T) {
	t.Parallel()
	s := filled(t)
	s.routes = nil                                   // these are not in the document
	for request, methods := range map[string]string{ // that the path has
		"GET /v1/none": "", "GET /v1/regions/": "", "POST /v1/none": "",
		"POST /v1/regions": "GET, HEAD", "DELETE /v1/charts/US": "GET, HEAD",
		"PUT /v1/links": "POST", "GET /v1/links": "POST", "GET /v1/holds/x": "PATCH, DELETE",
	} {
		want := 404
		if methods != "" {
			want = 405
		}
		method, path, _ := strings.Cut(request, " ")
		r := s.send(method, path, "")
		s.wants(r, want, `"status":`)
		if got := r.header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s: %s", request, got)
		}
		if got := r.header.Get("Allow"); got != methods {
			t.Errorf("%s: allows %q", request, got)
		}
	}
	r := s.send(http.MethodPost, "/v1/decisions", `{"policy":"rlaas","key":"a"}`)
	s.wants(r, 404, "policies: under serve:") // there is no limiter at all
}

// TestLedgerAway: while the ledger cannot be reached, budgets are answered with 503 and
// Retry-After. Charts are still shown.
func TestLedgerAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	l, err := ledger.Open(t.Context(), "redis://"+server.Addr)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	var logged metertest.Log
	s := newEnv(t, func(s *Server) {
		cfg := s.Source().Config
		s.Source = func() report.Source { return report.Source{Config: cfg, Ledger: l} }
		s.Log = slog.New(slog.NewTextHandler(&logged, nil))
	})
	s.wants(s.get("/v1/budgets"), 200)
	server.Kill()
	for _, path := range []string{"/v1/log", "/v1/forecast", "/log"} {
		r := s.get(path)
		s.wants(r, 503, "the ledger cannot be reached now")
		if after := r.header.Get("Retry-After"); (after == "5") != (path != "/log") {
			t.Errorf("%s: Retry-After %q", path, after)
		}
	}
	s.wants(s.get("/v1/regions"), 200)
	s.wants(s.get("/"), 200, "The ledger cannot be read")
	if text := logged.String(); strings.Count(text, "\n") != 1 ||
		!strings.Contains(text, "cannot read the ledger") {
		t.Errorf("four answers were not possible, logged is:\n%s", text)
	}
	server.Begin(t)
	for s.get("/v1/log").status != http.StatusOK { // until the client has found it again
	}
}

// A ledger file that was moved away is no longer read, because other programs no longer use it.
// Once the file is back, the budgets are shown again.
func TestLedgerMoved(t *testing.T) {
	t.Parallel()
	s := newEnv(t, nil)
	path := strings.TrimPrefix(s.server.Source().Config.Ledger, "sqlite://")
	s.spend("youtube.videos.list", "1")
	s.wants(s.get("/v1/log"), 200, `"units":1`)
	must(t, os.Rename(path, path+".away"))
	for _, at := range []string{"/v1/budgets", "/v1/log/entries", "/v1/forecast", "/log"} {
		s.wants(s.get(at), 503, "the ledger cannot be used")
	}
	s.wants(s.get("/v1/regions"), 200)
	must(t, os.Rename(path+".away", path))
	s.wants(s.get("/v1/budgets"), 200)
}
