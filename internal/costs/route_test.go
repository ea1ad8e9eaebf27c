package costs_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// request returns a request as a server reads it.
func request(t testing.TB, verb, target string, header ...string) *http.Request {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	must(t, err)
	r := &http.Request{Method: verb, URL: u, Host: "example.test", Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// TestMethodByRule names requests that TestEveryDiscoveredMethodIsPriced does not make.
func TestMethodByRule(t *testing.T) {
	table := costs.Default()
	named := func(want, verb, target string, header ...string) {
		t.Helper()
		r, err := http.NewRequest(verb, "https://example.test"+target, nil)
		must(t, err)
		r.Method = verb
		if len(header) > 0 {
			r.Header.Set(costs.Override, header[0])
		}
		got, err := table.Method(r)
		if got != want || errors.Is(err, quota.ErrUnpriced) != (want == "") {
			t.Errorf("%s %s %q: %q, %v; want %q", verb, target, header, got, err, want)
		}
	}
	const uploads = "/upload/youtube/v3/videos"
	const captions = "/resumable/upload/youtube/v3/captions?upload_id=1"
	named("youtube.videos.list", "", "/youtube/v3/videos")
	named("youtube.videos.list", "GET", "/youtube/v3/videos/")
	for _, verb := range []string{"POST", "PUT", "DELETE"} {
		named("youtube.videos.insert", verb, uploads+"?uploadType=resumable&upload_id=1")
	}
	named("youtube.captions.update", "PUT", captions)
	named("youtube.captions.update", "POST", captions) // the dearest
	for path, want := range map[string]string{"": "list", "?part=id": "list",
		"/getRating": "getRating", ":batchGetStats": "batchGetStats"} { // long lists of ids
		named("youtube.videos."+want, "POST", "/youtube/v3/videos"+path, "GET")
	}

	for _, query := range []string{"", "?upload_id="} {
		named("", "PUT", uploads+query)
	}
	for _, target := range []string{uploads, uploads + "?upload_id=1",
		"//youtube/v3/videos", "/youtube/v3/captions/..",
		"/youtube/v3/captions/a/b", "/youtube/v3/Videos", "/proxy/youtube/v3/videos",
		"/youtube/v3search", "/", ""} {
		named("", "GET", target)
	}
	for _, verb := range []string{"PATCH", "HEAD", "get"} {
		named("", verb, "/youtube/v3/videos")
	}
	named("", "PUT", "/youtube/v3/playlistImages/x?upload_id=1")
	named("", "PUT", "/youtube/v3/comments/markAsSpam")
	named("", "POST", "/batch")
	named("", "POST", "/batch/youtube/v3")
}

// TestAmbiguous: requests that the upstream could read as another call are refused.
func TestAmbiguous(t *testing.T) {
	const videos, override = "/youtube/v3/videos", "X-HTTP-Method-Override"
	for _, c := range []struct{ verb, target, override string }{
		{"GET", "/youtube/v3/captions/..%2fvideos", ""},
		{"GET", "/youtube/v3/captions/x/../../videos", ""},
		{"GET", "/youtube/v3//videos", ""},
		{"GET", "/youtube/v3/./videos", ""},
		{"GET", videos + "?a=1;b=2", ""},
		{"GET", videos + "?part=%zz", ""},
		{"POST", videos, "DELETE"},
		{"POST", videos, "get"},
		{"GET", videos, "GET"},
		{"POST", "/youtube/v3/captions/x", "GET"}, // a download is never sent like that
		{"POST", "/upload/youtube/v3/videos", "GET"},
	} {
		r := request(t, c.verb, c.target)
		if c.override != "" {
			r.Header.Set(override, c.override)
		}
		got, err := costs.Default().Method(r)
		if _, ok := errors.AsType[*costs.AmbiguousError](err); !ok || got != "" ||
			!errors.Is(err, quota.ErrUnpriced) {
			t.Errorf("%v: %q, %v", c, got, err)
		}
	}
}

// TestPaths: segments are compared unescaped, the most specific route wins, and a trailing slash is
// significant only if a route has it.
func TestPaths(t *testing.T) {
	table := parsed(t, listOf("", `
  a.read: {route: ["GET /files/{path...}", "GET /forum/{id}/"], source: page, cost: {units: 1}}
  a.same: {route: ["GET /files/search/{what}", "GET /files/new"], source: page, cost: {units: 1}}
  a.dear: {route: ["GET /files/dear", "GET /users/{id}/export"], source: page, cost: {units: 9}}
  a.user: {route: ["GET /users/{id}"], source: page, cost: {units: 1}}
  a.users: {route: ["GET /users", "GET /users/me"], source: page, cost: {units: 2}}
  a.runs: {route: ["GET /runs/{id}:log"], source: page, cost: {units: 1}}`))
	for path, want := range map[string]string{
		"/": "", "/forum/7/": "a.read", "/forum/7": "", "/files/x/": "a.read",
		"/files/a%20b/c": "a.read", "/files/x/%C3%A9t%C3%A9": "a.read", "/files/x/a%2Fb": "a.read",
		"/files/search/a%20b": "a.same", "/files/new/": "a.same", "/files/100%25/x": "a.read",
		"/files/dear/": "a.dear", "/files/de%61r": "a.dear", "/users/a%20b/export": "a.dear",
		"/files/search%2Fa": "", "/users/7%2fexport": "", "/files/de%2561r": "", "/users/7%2Fx": "a.user",
		"/users/": "a.users", "/users/7/": "a.user", "/users/a%20b": "a.user",
		"/runs/a%20b:log": "a.runs", "/runs/a%3Alog": "a.runs", "/files/x/..%2F..%2Fdear": "",
		"/files/x//y": "",
	} {
		got, err := table.Method(request(t, "GET", path))
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v; want %q", path, got, err, want)
		}
	}
}

// TestParametersOfPaths: the value of a {name} does not include a trailing slash.
func TestParametersOfPaths(t *testing.T) {
	table := parsed(t, listOf("", `
  a.get: {route: "GET /v1/{n}/", source: page, take: {units: int(path.n)}}
  a.all: {route: "GET /v2/{n}", source: page, take: {units: int(path.n)}}`))
	for _, path := range []string{"/v1/7/", "/v2/7", "/v2/7/"} {
		r := request(t, "GET", path)
		method, err := table.Method(r)
		must(t, err)
		q, err := table.Quote(method, r, nil, nil)
		must(t, err)
		if got := quoted(q.Costs); got != "units 7" {
			t.Errorf("%s takes %s", path, got)
		}
	}
}

func TestParseEndpoint(t *testing.T) {
	const form, more, clear = "write https://HOST/",
		"write scheme, host and path alone", "would send the API key unencrypted"
	for text, want := range map[string]string{
		"https://youtube.googleapis.com":    "https://youtube.googleapis.com/",
		"https://h:1/a/b/":                  "https://h:1/a/b/",
		"https://h/a%2Fb":                   "https://h/a%2Fb/",
		"http://127.0.0.1:8080":             "http://127.0.0.1:8080/",
		"http://127.9.8.7/":                 "http://127.9.8.7/",
		"http://localhost:8080/x":           "http://localhost:8080/x/",
		"http://[::1]:8080/":                "http://[::1]:8080/",
		"":                                  form,
		"youtube.googleapis.com":            form,
		"ftp://h/":                          form,
		"https:h":                           form,
		"https://:443/":                     form,
		"http://%zz/":                       form,
		"http://127.0.0.1:/":                form, // the client would omit the colon
		"https://u:pw@h/":                   more,
		"https://h/?key=k":                  more,
		"https://h/?":                       more,
		"https://h/#k":                      more,
		"http://youtube.googleapis.com/":    clear,
		"http://10.0.0.1/":                  clear,
		"http://0.0.0.0/":                   clear,
		"http://[::]/":                      clear,
		"http://[::1%25eth0]/":              clear,
		"http://127.1/":                     clear, // the resolver may read another address
		"http://2130706433/":                clear,
		"http://127.0.0.1.nip.io/":          clear,
		"http://localhost.example.com/":     clear,
		"http://sub.localhost/":             clear,
		"http://localhost./":                clear,
		"http://LOCALHOST/":                 clear, // a proxy may not recognize it as this machine
		"HTTP://youtube.googleapis.com/":    clear,
		"http://stand-in/":                  clear,
		"http://localhost@10.0.0.1/":        more,
		"http://10.0.0.1#localhost":         more,
		"http://10.0.0.1\\@localhost/":      form,
		"http://[::ffff:10.0.0.1]/":         clear,
		"http://[::ffff:127.0.0.1]:8080/":   "http://[::ffff:127.0.0.1]:8080/",
		"https://10.0.0.1/":                 "https://10.0.0.1/",
		"HTTPS://h":                         "https://h/",
		"http://host.docker.internal:8080/": clear,
	} {
		u, err := costs.ParseEndpoint(text)
		switch {
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %s", text, err, want)
		case err == nil && u.String() != want:
			t.Errorf("%s: %s, want %s", text, u, want)
		}
	}
}
