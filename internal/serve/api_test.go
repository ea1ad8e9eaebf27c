package serve

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/report"
)

var nine = time.Date(2026, 7, 1, 9, 0, 0, 0, time.UTC)

func filled(t *testing.T) *env {
	s := newEnv(t, nil)
	s.fill("US", nine, "a", "b", "c")
	s.fill("US", nine.Add(time.Hour), "c", "b", "d")
	return s
}

func ids(videos []report.Video) string {
	var all []string
	for _, v := range videos {
		all = append(all, v.ID)
	}
	return strings.Join(all, " ")
}

// The chart of a region is the current one or, with at=, the one of that moment.
func TestChart(t *testing.T) {
	t.Parallel()
	s := filled(t)
	for query, want := range map[string]string{
		"":                         "c b d",
		"?limit=2":                 "c b",
		"?at=2026-07-01T09:30:00Z": "a b c",
		"?at=2026-07-01T10:00:00Z": "c b d",
	} {
		r := s.get("/v1/charts/US" + query)
		s.wants(r, 200)
		if got := ids(decode[report.Chart](s, r).Videos); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		if r.header.Get("Cache-Control") != "max-age=300" {
			t.Errorf("an old chart has Cache-Control %q", r.header.Get("Cache-Control"))
		}
	}
	s.wants(s.get("/v1/charts/BR"), 404, "a complete chart of BR")
	s.wants(s.get("/v1/charts/US?at=2026-07-01T08:59:59Z"), 404)
	s.wants(s.get("/v1/charts/ZZ"), 400, "not a region")
	s.wants(s.get("/charts/US?at=0001-01-01T00:00:00Z"), 404, "from before 1 Jan 0001")
	s.wants(s.get("/v1/charts/US?at=yesterday"), 422, "query.at")
	s.wants(s.get("/v1/charts/US?limit=0"), 422, "query.limit")
	s.wants(s.get("/v1/charts/US?top=3"), 422, "unknown query parameter")
}

func TestMaxAge(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]string{
		-time.Minute: "max-age=5", time.Second: "max-age=5", 10 * time.Minute: "max-age=60",
		24 * time.Hour: "max-age=300",
	} {
		if got := maxAge(age); got != want {
			t.Errorf("%v: %s, want %s", age, got, want)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	s := filled(t)
	got := decode[report.Changes](s, s.get("/v1/charts/US/changes"))
	if ids(got.Entered) != "d" || ids(got.Left) != "a" ||
		!slices.Equal(got.Moved, []report.Move{{ID: "c", Title: "Title of c", Rank: 1, Was: 3}}) {
		t.Errorf("%+v", got)
	}
	same := decode[report.Changes](s, s.get("/v1/charts/US/changes?from=2026-07-01T10:00:00Z"))
	if len(same.Entered)+len(same.Left)+len(same.Moved) > 0 {
		t.Errorf("a chart differs from itself: %+v", same)
	}
	s.wants(s.get("/v1/charts/US/changes?to=2026-07-01T09:00:00Z"), 404, "the first chart of US")
	s.wants(s.get("/v1/charts/US/changes?from=2026-07-01T08:00:00Z"), 404, "not in the catalogue")
}

// Every item of a list is on exactly one page, whatever the size of the pages.
func TestPaging(t *testing.T) {
	t.Parallel()
	s := newEnv(t, nil)
	const charts = 7
	for i := range charts {
		s.fill("US", nine.Add(time.Duration(i)*time.Hour), "a", "b", "c", "d", "e", "f", "g")
	}
	for path, key := range map[string]string{
		"/v1/charts/US/history?x": "completed_at", "/v1/sweeps?x": "run",
		"/v1/search?q=music": "id",
	} {
		path = strings.TrimSuffix(path, "?x")
		join := "?"
		if strings.Contains(path, "?") {
			join = "&"
		}
		for _, limit := range []string{"1", "3", "7", "50"} {
			var seen []any
			for cursor := ""; ; {
				page := decode[list[map[string]any]](s, s.get(path+join+"limit="+limit+
					"&cursor="+url.QueryEscape(cursor)))
				for _, item := range page.Items {
					if slices.Contains(seen, item[key]) {
						t.Errorf("%s by %s: %v twice", path, limit, item[key])
					}
					seen = append(seen, item[key])
				}
				if page.Next == nil {
					break
				}
				cursor = *page.Next
			}
			if len(seen) != charts {
				t.Errorf("%s by %s: %d items, want %d", path, limit, len(seen), charts)
			}
		}
		s.wants(s.get(path+join+"cursor=!"), 400, "cursor: send the next")
	}
}

// TestSearchEnds: the last page of a search has no cursor, also if more than 500 videos match.
func TestSearchEnds(t *testing.T) {
	t.Parallel()
	s := newEnv(t, nil)
	var videos []catalog.Video
	for i := range 700 {
		title := "lofi"
		if i%2 == 1 {
			title = "lofis"
		}
		videos = append(videos, catalog.Video{ID: fmt.Sprint("v", i), Title: title})
	}
	s.store("US", "run", nine, videos...)
	for _, limit := range []int{50, 199, 200} {
		found, cursor := 0, new("")
		for cursor != nil {
			r := s.get(fmt.Sprintf("/v1/search?q=lofi&limit=%d&cursor=%s", limit, *cursor))
			s.wants(r, 200)
			page := decode[list[report.Video]](s, r)
			found, cursor = found+len(page.Items), page.Next
		}
		if found != maxResults {
			t.Errorf("by %d: %d videos, want %d", limit, found, maxResults)
		}
	}
}

func TestVideoAndSearch(t *testing.T) {
	t.Parallel()
	s := filled(t)
	h := decode[report.History](s, s.get("/v1/videos/b"))
	if h.ID != "b" || len(h.Counters) != 2 || len(h.Names) != 1 {
		t.Errorf("%+v", h)
	}
	s.wants(s.get("/v1/videos/none"), 404, "not in the catalogue")
	found := decode[list[report.Video]](s, s.get("/v1/search?q=channel+of+d"))
	if ids(found.Items) != "d" {
		t.Errorf("%+v", found)
	}
	s.wants(s.get("/v1/search"), 422, "query.q")
	s.wants(s.get("/v1/search?q=+"), 400, "words to search for")
	s.wants(s.get("/v1/regions"), 200, `"region":"BR","completed_at":null`)
}

// A client that has a response does not get it again, whatever form its ETag is sent in.
func TestETag(t *testing.T) {
	t.Parallel()
	s := newEnv(t, nil)
	s.fill("US", nine, strings.Split("abcdefghijkl", "")...)
	first := s.get("/v1/charts/US")
	tag := first.header.Get("ETag")
	for _, sent := range []string{tag, strings.TrimPrefix(tag, "W/"), `"x", ` + tag, "*"} {
		if r := s.get("/v1/charts/US", "If-None-Match", sent); r.status != 304 || r.body != "" {
			t.Errorf("%s: %d %s", sent, r.status, r.body)
		}
	}
	s.wants(s.get("/v1/charts/US", "If-None-Match", `"x"`), 200)
	for accept, want := range map[string]string{
		"gzip": "gzip", "br, gzip;q=0.5": "gzip", "gzip;q=0": "", "": ""} {
		r := s.get("/v1/charts/US", "Accept-Encoding", accept)
		if r.header.Get("Content-Encoding") != want {
			t.Errorf("%q: encoded as %q", accept, r.header.Get("Content-Encoding"))
		}
	}
	if r := s.send(http.MethodHead, "/v1/charts/US", ""); r.status != 200 || r.body != "" ||
		r.header.Get("Content-Length") != strconv.Itoa(len(first.body)) {
		t.Errorf("HEAD: %d %q %v", r.status, r.body, r.header)
	}
}

// A short link redirects to the page it was made for. Links to other addresses are refused.
func TestLinks(t *testing.T) {
	t.Parallel()
	s := filled(t)
	type link struct{ Slug, URL string }
	made := make(map[string]string)
	for _, to := range []string{"/charts/US", "/charts/US?at=2026-07-01T09:00:00Z",
		"/videos/-a_b", "/search?q=%3Cb%3E+x"} {
		r := s.send(http.MethodPost, "/v1/links", `{"to":"`+to+`"}`)
		s.wants(r, 201)
		l := decode[link](s, r)
		again := decode[link](s, s.send(http.MethodPost, "/v1/links", `{"to":"`+to+`"}`))
		if again != l {
			t.Errorf("%s: %v, then %v", to, l, again)
		}
		if l.URL != "/s/"+l.Slug || r.header.Get("Location") != l.URL || made[l.Slug] != "" {
			t.Errorf("%s: %v", to, l)
		}
		made[l.Slug] = to
		if r := s.get(l.URL); r.status != 302 || r.header.Get("Location") != to {
			t.Errorf("%s leads to %q (%d)", to, r.header.Get("Location"), r.status)
		}
	}
	for _, to := range []string{"https://elsewhere.example/", "//elsewhere.example/charts/US",
		"/\\\\elsewhere.example", "charts/US", "/charts/../s/x", "/charts/USA", "/openapi.json",
		"javascript:alert(1)", "/charts/US#x", "/charts/US\\r\\nX: y", ""} {
		r := s.send(http.MethodPost, "/v1/links", `{"to":"`+to+`"}`)
		if r.status != 400 && r.status != 422 {
			t.Errorf("%q: %d %s", to, r.status, r.body)
		}
	}
	long := `{"to":"/charts/US` + strings.Repeat("x", 5000) + `"}`
	s.wants(s.send(http.MethodPost, "/v1/links", long), 413)
	s.wants(s.get("/s/none"), 404)
}

// Requests to foreign host names are refused; public data may be read by any page.
func TestHosts(t *testing.T) {
	t.Parallel()
	s := newEnv(t, func(s *Server) { s.Hosts = []string{"board.lan"} })
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:1": 200, "board.lan:8080": 200, "board.lan.": 200,
		"[::1]:8080": 200, "evil.example": 421, "localhost.evil.example": 421, "": 200} {
		if r := s.get("/v1/regions", "Host", host); r.status != want {
			t.Errorf("%q: %d, want %d", host, r.status, want)
		}
	}
	private := s.get("/v1/regions", "Origin", "https://elsewhere.example")
	if private.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("another site may read a private server")
	}
	public := newEnv(t, func(s *Server) { s.Public = true })
	r := public.get("/v1/regions", "Host", "any.example")
	public.wants(r, 200)
	if r.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Error("another site may not read a public server")
	}
	if !strings.Contains(r.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Error("no Content-Security-Policy")
	}
}

// A client that disconnects is not counted as a failure of the server.
func TestDisconnected(t *testing.T) {
	t.Parallel()
	s := filled(t)
	handler, err := s.server.Handler()
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, path := range []string{"/v1/charts/US", "/v1/budgets", "/charts/US"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet,
			"http://localhost"+path, nil))
		if w.Code != statusClientClosed {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// A broken catalogue is reported in general words; the details go to the log.
func TestBrokenCatalogue(t *testing.T) {
	t.Parallel()
	s := filled(t)
	must(t, s.server.Catalog.Close())
	r := s.get("/v1/charts/US")
	s.wants(r, 500, "cannot be read now")
	if strings.Contains(r.body, "sql") {
		t.Errorf("details in the response: %s", r.body)
	}
	s.wants(s.get("/readyz"), 503)
	s.wants(s.get("/healthz"), 200)
}
