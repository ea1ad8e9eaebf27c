package serve

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/limit"
)

// newGuessed is a public server behind a proxy, with a token and an API key.
func newGuessed(t *testing.T) *env {
	return newEnv(t, func(s *Server) {
		withLedger(t)(s)
		guarded(limit.Rule{Policy: perHour("rlaas", 1000), By: limit.ByDecision})(s)
		s.Guard.Caller = (&limit.Known{
			Proxies: limit.Proxies{netip.MustParsePrefix("127.0.0.0/8")},
			Keys: map[limit.Digest]limit.APIKey{
				sha256.Sum256([]byte("api-key")): {Name: "key"}}}).Of
		s.Public, s.Tokens = true, tokens(t, "the-right-token-0")
	})
}

// Nobody can try tokens without bound, wherever the server takes one, and then the right one opens
// nothing for a while. What takes no token, other addresses and API keys are not concerned.
func TestGuesses(t *testing.T) {
	t.Parallel()
	for i, path := range []string{"/metrics", "/readyz", "/v1/budgets", "/v1/log", "/log", "/",
		"POST /v1/decisions"} {
		s := newGuessed(t)
		method, body := http.MethodGet, ""
		if rest, ok := strings.CutPrefix(path, "POST "); ok {
			method, path, body = http.MethodPost, rest, `{"policy":"rlaas","key":"a"}`
		}
		send := func(from, authorization string) reply {
			return s.send(method, path, body, "X-Forwarded-For", from, "Authorization",
				authorization)
		}
		here := fmt.Sprintf("203.0.113.%d", i)
		for n := range wrongTokens {
			wrong := fmt.Sprintf("Bearer wrong%d", n)
			if n%2 == 1 {
				wrong = "Basic " + base64.StdEncoding.EncodeToString([]byte(":"+wrong))
			}
			if r := send(here, wrong); r.status == http.StatusTooManyRequests {
				t.Fatalf("%s, try %d: %d", path, n+1, r.status)
			}
			if n < wrongTokens-1 {
				s.wants(send(here, "Bearer the-right-token-0"), 200)
			}
		}
		for _, authorization := range []string{"Bearer wrong", "Basic OnR3", "Bearer the-right-token-0"} {
			r := send(here, authorization)
			s.wants(r, 429, "try again in")
			if r.header.Get("Retry-After") == "" || strings.Contains(r.body, "/plan") {
				t.Errorf("%s: %v %s", path, r.header, r.body)
			}
		}
		s.wants(send("198.51.100.1", "Bearer the-right-token-0"), 200)
		if r := send(here, ""); r.status == http.StatusTooManyRequests {
			t.Errorf("%s without a token: %d", path, r.status)
		}
		if r := send(here, "Bearer api-key"); r.status == http.StatusTooManyRequests {
			t.Errorf("%s with an API key: %d", path, r.status)
		}
		for _, open := range []string{"/s/none", "/healthz", "/v1/regions"} {
			r := s.get(open, "X-Forwarded-For", here, "Authorization", "Bearer wrong")
			if r.status == http.StatusTooManyRequests {
				t.Errorf("%s takes no token: %d", open, r.status)
			}
		}
	}
}

// However many addresses guess, no more is kept of them than there are slots; and what somebody
// tried is forgotten.
func TestGuessesAreBounded(t *testing.T) {
	t.Parallel()
	const slots = 1 << 16
	g := newGuesses()
	for i := range 4 * slots {
		g.try(fmt.Sprint(i), false)
	}
	if n := g.counts.Len(); n > slots {
		t.Errorf("%d addresses are kept, of %d", n, slots)
	}
	g = newGuesses()
	for range 2 * wrongTokens {
		g.try("a", false)
	}
	denied := g.try("a", true)
	if denied == nil || denied[0].RetryAfter <= 0 || denied[0].RetryAfter >= 2*time.Minute {
		t.Errorf("%+v", denied)
	}
}

// A browser that a limit denies shows a page with the same words, status and fields; a program and
// the API get problem+json.
func TestDenialForPeople(t *testing.T) {
	t.Parallel()
	s := newEnv(t, guarded(limit.Rule{Policy: perHour("all", 1), By: limit.ByClient,
		Routes: []string{"GET /charts", "GET /v1/regions"}}))
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	s.wants(s.get("/charts", "Accept", browser), 200)
	for _, try := range []struct{ path, accept, kind string }{
		{"/charts", browser, "text/html; charset=utf-8"},
		{"/charts", "*/*", "application/problem+json"},
		{"/v1/regions", browser, "application/problem+json"},
	} {
		r := s.get(try.path, "Accept", try.accept)
		s.wants(r, 429, "Too many requests", "try again in")
		if r.header.Get("Content-Type") != try.kind || r.header.Get("Retry-After") == "" ||
			r.header.Get("RateLimit") == "" || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%+v: %v", try, r.header)
		}
		if strings.HasPrefix(try.kind, "text") != strings.Contains(r.body, "Back to the board") {
			t.Errorf("%+v: %s", try, r.body)
		}
	}
}
