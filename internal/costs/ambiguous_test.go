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
		"/youtube/v3/videos/", "/youtube/v3/./videos", videos + "?a=1;b=2", videos + "?part=%zz",
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
