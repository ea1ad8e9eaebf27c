package costs_test

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// request is one as a server reads it.
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

// TestAmbiguous: what the upstream could take for another call is refused.
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

// The error for a verb that a path does not have lists those that it has.
func TestWrongVerb(t *testing.T) {
	_, err := costs.Default().Method(request(t, "PATCH", "/youtube/v3/captions"))
	wrong, ok := errors.AsType[*costs.VerbError](err)
	if !ok || !errors.Is(err, quota.ErrUnpriced) || len(wrong.Allowed) != 4 ||
		wrong.Allowed[0] != "DELETE" {
		t.Errorf("got %v", err)
	}
}

// TestPaths: each segment is compared unescaped, the narrowest route counts, and a slash at the end
// counts only where a route has it.
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

// TestParametersOfPaths: a slash at the end is no part of what a {name} stands for.
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
