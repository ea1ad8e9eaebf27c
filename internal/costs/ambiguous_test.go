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
	if err != nil {
		t.Fatal(err)
	}
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
	const videos, override = "/youtube/v3/videos", "X-HTTP-Method-Override"
	for _, c := range []struct {
		verb, target string
		header       []string
	}{
		{"GET", "/youtube/v3/captions/..%2fvideos", nil},
		{"GET", "/youtube/v3/captions/%2e%2e", nil},
		{"GET", "/youtube/v3/captions/..", nil},
		{"GET", "/youtube/v3/captions/.", nil},
		{"GET", "/youtube/v3/captions/..;a", nil},
		{"GET", "/youtube/v3/captions/a%2Fb", nil},
		{"GET", "/youtube/v3/captions/a%5Cb", nil},
		{"GET", "/youtube/v3/captions/a%252Fb", nil},
		{"GET", "/youtube/v3/captions/a%00", nil},
		{"GET", "/youtube/v3/captions/a%0d%0ab", nil},
		{"GET", "/youtube/v3/captions/a;b", nil},
		{"GET", "/youtube/v3/captions/a%3Fpart=id", nil},
		{"GET", "/youtube/v3/captions/%ff", nil},
		{"GET", "/youtube/v3/captions/", nil},
		{"GET", "/youtube/v3/captions/x/../../videos", nil},
		{"GET", "/youtube/v3//videos", nil},
		{"GET", "//youtube/v3/videos", nil},
		{"GET", "/youtube/v3/videos/", nil},
		{"GET", "/youtube/v3/./videos", nil},

		{"GET", videos + "?a=1;b=2", nil},
		{"GET", videos + "?part=%zz", nil},
		{"GET", videos + "?pa%00rt=id", nil},
		{"GET", videos + "?$httpMethod=DELETE", nil},
		{"GET", videos + "?%24httpHeaders=X-HTTP-Method-Override:DELETE", nil},
		{"POST", videos + "?_method=DELETE", nil},
		{"POST", videos + "?x-http-method-override=DELETE", nil},

		{"POST", videos, []string{override, "DELETE"}},
		{"POST", videos, []string{override, "get"}},
		{"POST", videos, []string{override, ""}},
		{"POST", videos, []string{override, "GET, DELETE"}},
		{"POST", videos, []string{override, "GET", override, "DELETE"}},
		{"POST", videos, []string{override, "GET", override, "GET"}},
		{"GET", videos, []string{override, "DELETE"}},
		{"GET", videos, []string{override, "GET"}},
		{"PUT", videos, []string{override, "GET"}},
		{"POST", videos, []string{"X-HTTP-Method", "DELETE"}},
		{"POST", videos, []string{"X-Method-Override", "DELETE"}},
		{"GET", videos, []string{"X_http_method_override", "DELETE"}},
		{"GET", videos, []string{"X-Original-Url", "/youtube/v3/search"}},
		{"GET", videos, []string{"X-Rewrite-Url", "/youtube/v3/search"}},
		{"POST", "/youtube/v3/captions/x", []string{override, "GET"}}, // a download never comes so
		{"POST", "/upload/youtube/v3/videos", []string{override, "GET"}},
	} {
		got, err := table.Method(request(t, c.verb, c.target, c.header...))
		if _, ok := errors.AsType[*costs.AmbiguousError](err); !ok || got != "" ||
			!errors.Is(err, quota.ErrUnpriced) {
			t.Errorf("%s %s %q: %q, %v", c.verb, c.target, c.header, got, err)
		}
	}
}

// Long lists of ids come from the upstream's own clients as POST, and cost what the GET costs.
func TestOverride(t *testing.T) {
	table := costs.Default()
	for _, path := range []string{"/youtube/v3/videos", "/youtube/v3/channels?part=id",
		"/youtube/v3/videos/getRating",
		"/youtube/v3/videos:batchGetStats"} {
		want, err := table.Method(request(t, "GET", path))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := table.Method(request(t, "POST", path, "x-http-method-override",
			"GET")); got != want {
			t.Errorf("POST %s: %q, %v; want %s", path, got, err, want)
		}
	}
}

// A verb that a path does not have is told with those that it has.
func TestWrongVerb(t *testing.T) {
	_, err := costs.Default().Method(request(t, "PATCH", "/youtube/v3/captions"))
	wrong, ok := errors.AsType[*costs.VerbError](err)
	if !ok || !errors.Is(err, quota.ErrUnpriced) || len(wrong.Allowed) != 4 ||
		wrong.Allowed[0] != "DELETE" {
		t.Errorf("got %v", err)
	}
}
