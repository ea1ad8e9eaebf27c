package costs_test

import (
	"bufio"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"

	"quotabudget/internal/costs"
)

// FuzzMethod looks for a request that is named as a method which it is not: by the plainest reading
// of its path, its verb and its override.
func FuzzMethod(f *testing.F) {
	for _, seed := range [][3]string{
		{"GET", "/youtube/v3/videos?part=id", ""},
		{"GET", "/youtube/v3/captions/..%2fvideos", ""},
		{"GET", "/youtube/v3/captions/a%3D?$httpMethod=DELETE", ""},
		{"GET", "//youtube/v3/./search?a=1;b=2", ""},
		{"POST", "/youtube/v3/videos", "X-HTTP-Method-Override: GET"},
		{"POST", "/youtube/v3/videos",
			"X-HTTP-Method-Override: GET\r\nX-HTTP-Method-Override: DELETE"},
		{"POST", "/youtube/v3/search", "X_HTTP_Method: DELETE"},
		{"PUT", "/resumable/upload/youtube/v3/videos?upload_id=1", "Content-Range: bytes 0-1/2"},
		{"GET", "http://youtube.googleapis.com/youtube/v3/videos", ""},
		{"TRACE", "*", "Upgrade: h2c"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	table := costs.Default()
	f.Fuzz(func(t *testing.T, verb, target, header string) {
		text := verb + " " + target + " HTTP/1.1\r\nHost: example.test\r\n"
		if header != "" {
			text += header + "\r\n"
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text + "\r\n")))
		if err != nil {
			return
		}
		id, err := table.Method(r)
		if err != nil {
			if id != "" {
				t.Errorf("named %s and refused: %v", id, err)
			}
			return
		}
		m, err := table.Lookup(id)
		must(t, err)
		if !plainly(m, r) {
			t.Errorf("%q %q is named %s", text, r.URL.Path, id)
		}
		again := r.Clone(t.Context())
		if again.URL, err = r.URL.Parse(r.URL.String()); err != nil {
			t.Fatal(err)
		}
		if other, err := table.Method(again); other != id {
			t.Errorf("%s is named %s, and %q once it was sent on: %v", r.URL, id, other, err)
		}
	})
}

// plainly reports whether the request is one of the method, as anybody would read it.
func plainly(m costs.Method, r *http.Request) bool {
	route := regexp.MustCompile(`\\\{.*?\\\}`).ReplaceAllString(regexp.QuoteMeta(m.Path), `[^/]+`)
	if m.Upload {
		route = "(/upload|/resumable/upload)?" + route
	}
	if !regexp.MustCompile("^"+route+"$").MatchString(r.URL.Path) ||
		path.Clean(r.URL.Path) != r.URL.Path {
		return false
	}
	over := r.Header.Values("X-HTTP-Method-Override")
	switch {
	case len(over) > 0:
		return r.Method == "POST" && m.Verb == "GET" && len(over) == 1 && over[0] == "GET"
	case r.Method == m.Verb:
		return true
	}
	goesOn := r.Method == "PUT" || r.Method == "POST" || r.Method == "DELETE"
	return goesOn && r.URL.Query().Has("upload_id") && strings.Contains(r.URL.Path, "/upload/")
}
