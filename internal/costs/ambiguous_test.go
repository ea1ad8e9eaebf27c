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

// What the upstream could take for another call than the one that would be charged is refused,
// never guessed at.
func TestAmbiguous(t *testing.T) {
	table := costs.Default()
	refused := func(verb, target string, header ...string) {
		t.Helper()
		got, err := table.Method(request(t, verb, target, header...))
		if _, ok := errors.AsType[*costs.AmbiguousError](err); !ok || got != "" ||
			!errors.Is(err, quota.ErrUnpriced) {
			t.Errorf("%s %s %q: %q, %v", verb, target, header, got, err)
		}
	}
	const videos, override = "/youtube/v3/videos", "X-HTTP-Method-Override"
	for _, id := range []string{"..%2fvideos", "%2e%2e", "..", ".", "..;a", "a%2Fb", "a%5Cb",
		"a%252Fb", "a%00", "a%0d%0ab", "%4a", "%4F", "%5a", "%6A",
		"%6f", "%7a", "%31", "a;b", "a%3Fpart=id", "%ff", "", "x/../../videos"} {
		refused("GET", "/youtube/v3/captions/"+id)
	}
	for _, target := range []string{"/youtube/v3//videos", "//youtube/v3/videos",
		"/youtube/v3/./videos", videos + "?a=1;b=2", videos + "?part=%zz",
		videos + "?pa%00rt=id", videos + "?$httpMethod=DELETE",
		videos + "?%24httpHeaders=X-HTTP-Method-Override:DELETE"} {
		refused("GET", target)
	}
	refused("POST", videos+"?_method=DELETE")
	refused("POST", videos+"?x-http-method-override=DELETE")

	for _, verb := range []string{"DELETE", "get", "", "GET, DELETE"} {
		refused("POST", videos, override, verb)
	}
	refused("POST", videos, override, "GET", override, "DELETE")
	refused("POST", videos, override, "GET", override, "GET")
	refused("GET", videos, override, "DELETE")
	refused("GET", videos, override, "GET")
	refused("PUT", videos, override, "GET")
	refused("POST", videos, "X-HTTP-Method", "DELETE")
	refused("POST", videos, "X-Method-Override", "DELETE")
	refused("GET", videos, "X_http_method_override", "DELETE")
	refused("GET", videos, "X-Original-Url", "/youtube/v3/search")
	refused("GET", videos, "X-Rewrite-Url", "/youtube/v3/search")
	refused("GET", videos, "Authorization", "", "authorization", "Bearer x")
	refused("POST", videos, "Content-Type", "multipart/form-data", "content-type", "application/json")
	refused("POST", videos, "Content-Encoding", "identity", "Content-Encoding", "gzip")
	refused("POST", "/youtube/v3/captions/x", override, "GET") // a download is never sent like that
	refused("POST", "/upload/youtube/v3/videos", override, "GET")
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

// TestPathsOfOnePrice: a path that servers may read in several ways is priced where every route
// that it may match costs the same, and refused elsewhere.
func TestPathsOfOnePrice(t *testing.T) {
	table, err := costs.Parse([]byte(listOf("", `
  a.read: {route: ["GET /files/{path...}", "GET /forum/{id}/"], source: page, cost: {units: 1}}
  a.same: {route: ["GET /files/search/{what}", "GET /files/new"], source: page, cost: {units: 1}}
  a.dear: {route: ["GET /files/dear", "GET /users/{id}/export"], source: page, cost: {units: 9}}
  a.user: {route: ["GET /users/{id}"], source: page, cost: {units: 1}}
  a.users: {route: ["GET /users", "GET /users/me"], source: page, cost: {units: 2}}
  a.runs: {route: ["GET /runs/{id}:log"], source: page, cost: {units: 1}}`)))
	must(t, err)
	for path, want := range map[string]string{
		"/": "", "/forum/7/": "a.read", "/forum/7": "", "/files/x/": "a.read",
		"/files/a%20b/c": "a.read", "/files/x/%C3%A9t%C3%A9": "a.read", "/files/x/a%2Fb": "a.read",
		"/files/x/C%23": "a.read", "/files/x/what%3F": "a.read", "/files/x/[b]": "a.read",
		"/files/search/a%20b": "a.same", "/files/new/": "a.same", "/files/100%25/x": "a.read",
		"/files/a%20b": "", // or /files/dear
		"/files/dear/": "", "/files%2Fdear": "", "/users/a%20b/export": "a.dear",
		"/users/": "", "/users/7/": "a.user", "/users/a%20b": "", "/users/7%2Fexport": "",
		"/runs/a%20b:log": "a.runs", "/runs/a%3Alog": "", "/files/x/..%2F..%2Fdear": "",
		"/files/x/%2e%2e/dear": "", "/files/x//y": "", "/files/x/a%252Fb": "", "/files/x/a;b": "",
		"/files/x/a%00": "", "/files/x/%ff": "", "/files/x/%61": "",
	} {
		got, err := table.Method(request(t, "GET", path))
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v; want %q", path, got, err, want)
		}
	}
}

// TestParametersOfPaths: a slash at the end is no part of what a {name} stands for.
func TestParametersOfPaths(t *testing.T) {
	table, err := costs.Parse([]byte(listOf("", `
  a.get: {route: "GET /v1/{n}/", source: page, take: {units: int(path.n)}}
  a.all: {route: "GET /v2/{n}", source: page, take: {units: int(path.n)}}`)))
	must(t, err)
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
