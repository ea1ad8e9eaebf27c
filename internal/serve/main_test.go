package serve

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"quotabudget/internal/catalog"
	"quotabudget/internal/limit"
	"quotabudget/internal/report"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tokens reads a token file.
func tokens(t testing.TB, text string) *limit.Tokens {
	t.Helper()
	known, err := limit.ParseTokens("tokens", text, false)
	must(t, err)
	return known
}

// env is a server over a real catalogue, and the document that its responses are held to.
type env struct {
	*testing.T
	server *Server
	url    string
	routes routers.Router
}

func newEnv(t *testing.T, change func(*Server)) *env {
	t.Helper()
	c, err := catalog.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "catalog.db"))
	must(t, err)
	server := &Server{Catalog: c, Log: slog.New(slog.DiscardHandler), Source: usual(t)}
	if change != nil {
		change(server)
	}
	handler, err := server.Handler()
	must(t, err)
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		web.Close()
		must(t, c.Close())
	})
	s := &env{T: t, server: server, url: web.URL}
	document, err := openapi3.NewLoader().LoadFromData([]byte(s.get("/openapi.json").body))
	must(t, err)
	must(t, document.Validate(t.Context()))
	s.routes, err = gorillamux.NewRouter(document)
	must(t, err)
	return s
}

// usual returns the default configuration, scheduled, and an empty ledger.
func usual(t *testing.T) func() report.Source {
	t.Helper()
	cfg, l := configured(t, "ledger: sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
	cfg.Ingest.Scheduled = true
	return func() report.Source { return report.Source{Config: cfg, Ledger: l} }
}

// fill stores a complete chart of made-up videos.
func (s *env) fill(region string, at time.Time, ids ...string) {
	s.Helper()
	var videos []catalog.Video
	for _, id := range ids {
		views := at.Unix() % 1000
		videos = append(videos, catalog.Video{ID: id, Title: "Title of " + id,
			ChannelID: "UC" + id, ChannelTitle: "Channel of " + id, Tags: []string{"music"},
			Description: "About " + id, Views: &views})
	}
	s.store(region, "run"+at.Format("150405"), at, videos...)
}

// store stores a complete chart of one page.
func (s *env) store(region, run string, at time.Time, videos ...catalog.Video) {
	s.Helper()
	_, _, err := s.server.Catalog.Begin(s.Context(), region, run, 0,
		catalog.Page{FetchedAt: at, Last: true, Videos: videos})
	must(s, err)
}

type reply struct {
	status int
	header http.Header
	body   string
}

// decode reads the body as JSON.
func decode[T any](s *env, r reply) (out T) {
	s.Helper()
	if err := json.Unmarshal([]byte(r.body), &out); err != nil {
		s.Fatalf("%v: %s", err, r.body)
	}
	return out
}

func (s *env) get(path string, headers ...string) reply {
	s.Helper()
	return s.send(http.MethodGet, path, "", headers...)
}

// send holds each answer of the API to the document.
func (s *env) send(method, path, body string, headers ...string) reply {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	must(s, err)
	if body != "" && !slices.Contains(headers, "Content-Type") {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Add(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	client := &http.Client{Timeout: time.Minute,
		Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}
	answer, err := client.Do(r)
	must(s, err)
	text, err := io.ReadAll(answer.Body)
	must(s, err)
	must(s, answer.Body.Close())
	out := reply{answer.StatusCode, answer.Header, string(text)}
	if s.routes != nil && strings.HasPrefix(path, "/v1/") && method != http.MethodHead {
		s.hold(r, out)
	}
	return out
}

// hold reports what an answer has that the document does not say.
func (s *env) hold(r *http.Request, answer reply) {
	s.Helper()
	if answer.header.Get("Content-Encoding") != "" || answer.status == http.StatusNotModified ||
		answer.status == http.StatusMisdirectedRequest {
		return
	}
	route, params, err := s.routes.FindRoute(r)
	must(s, err)
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r,
			PathParams: params, Route: route},
		Status: answer.status, Header: answer.header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	input.SetBodyBytes([]byte(answer.body))
	if err := openapi3filter.ValidateResponse(s.Context(), input); err != nil {
		s.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
}

// wants reports an answer of another status, or one without these words.
func (s *env) wants(r reply, status int, words ...string) {
	s.Helper()
	if r.status != status {
		s.Errorf("status %d, want %d: %s", r.status, status, r.body)
	}
	for _, w := range words {
		if !strings.Contains(r.body, w) {
			s.Errorf("answer without %q: %s", w, r.body)
		}
	}
}

var (
	tag    = regexp.MustCompile(`<[^>]*>`)
	blanks = regexp.MustCompile(`\s+`)
)

// text returns what a page shows, without its tags.
func (r reply) text() string {
	_, main, _ := strings.Cut(r.body, "<main")
	main, _, _ = strings.Cut(main, "</main>")
	return strings.TrimSpace(blanks.ReplaceAllString(tag.ReplaceAllString("<main"+main, " "), " "))
}

// shows reports a page of another status, or one without these texts.
func (s *env) shows(path string, status int, wanted ...string) reply {
	s.Helper()
	r := s.get(path)
	if r.status != status {
		s.Errorf("%s: status %d, want %d", path, r.status, status)
	}
	for _, text := range wanted {
		if !strings.Contains(r.text(), text) {
			s.Errorf("%s does not show %q:\n%s", path, text, r.text())
		}
	}
	return r
}
