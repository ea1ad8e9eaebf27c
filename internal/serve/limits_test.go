package serve

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/limit"
)

func guarded(limits ...limit.Rule) func(*Server) {
	return func(s *Server) {
		known := &limit.Known{}
		s.Guard = &limit.Guard{Limits: limits, Store: limit.NewMemory(), Caller: known.Of}
	}
}

func perHour(name string, units int64) limit.Policy {
	return limit.Policy{Name: name, Units: units, Window: time.Hour, Algorithm: limit.Log}
}

// The creation of links is limited; following them and health checks are not.
func TestLinksAreLimited(t *testing.T) {
	t.Parallel()
	s := newEnv(t, guarded(limit.Rule{Policy: perHour("links", 2), By: limit.ByClient,
		Routes: []string{"POST /v1/links"}}))
	for i := range 3 {
		want := http.StatusCreated
		if i == 2 {
			want = http.StatusTooManyRequests
		}
		r := s.send(http.MethodPost, "/v1/links", fmt.Sprintf(`{"to":"/videos/%d"}`, i))
		s.wants(r, want)
		if r.header.Get("RateLimit") == "" || r.header.Get("RateLimit-Policy") == "" {
			t.Errorf("no RateLimit fields: %v", r.header)
		}
		if i == 2 && r.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	slug := decode[struct{ Slug string }](s, s.send(http.MethodGet, "/openapi.json", "")).Slug
	for range 20 {
		s.wants(s.get("/s/none"+slug), 404)
		s.wants(s.get("/healthz"), 200)
		s.wants(s.get("/v1/regions"), 200)
	}
}

// TestDecisions: a denial has status 200, too, and the time to retry.
func TestDecisions(t *testing.T) {
	t.Parallel()
	s := newEnv(t, func(s *Server) {
		guarded(limit.Rule{Policy: perHour("rlaas", 5), By: limit.ByDecision},
			limit.Rule{Policy: perHour("mine", 90), By: limit.ByClient})(s)
		s.Guard.Stats = &limit.Stats{}
	})
	ask := func(key string, cost int) decision {
		r := s.send(http.MethodPost, "/v1/decisions",
			fmt.Sprintf(`{"policy":"rlaas","key":%q,"cost":%d}`, key, cost))
		s.wants(r, 200)
		return decode[decision](s, r)
	}
	for i := range 5 {
		if d := ask("a", 1); !d.Allowed || d.Remaining != int64(4-i) || *d.RetryAfter != 0 {
			t.Errorf("call %d: %+v", i+1, d)
		}
	}
	d := ask("a", 1)
	if d.Allowed || *d.RetryAfter < 3500 || *d.RetryAfter > 3600 ||
		time.Until(time.Time(d.ResetAt)) > time.Hour {
		t.Errorf("%+v", d)
	}
	if d := ask("a", 0); !d.Allowed || d.Remaining != 0 {
		t.Errorf("a look: %+v", d)
	}
	if d := ask("c", 0); !d.Allowed || d.Remaining != 5 {
		t.Errorf("a look at a new key: %+v", d)
	}
	if d := ask("b", 5); !d.Allowed {
		t.Errorf("another key: %+v", d)
	}
	if d := ask("b", 6); d.Allowed || d.RetryAfter != nil {
		t.Errorf("more than the limit: %+v", d)
	}
	for body, want := range map[string]int{
		`{"policy":"none","key":"a"}`: 404, `{"policy":"rlaas"}`: 422,
		`{"policy":"mine","key":"a"}`:            404, // a limit for callers of this server
		`{"policy":"rlaas","key":"a","cost":-1}`: 422, `{"policy":"rlaas","key":""}`: 422,
		`{"policy":"rlaas","key":"a","cost":9999999999999999999}`: 422,
		`{`: 400,
	} {
		s.wants(s.send(http.MethodPost, "/v1/decisions", body), want)
	}
	if who := s.server.Guard.Stats.TopDenied(1); len(who) > 0 {
		t.Errorf("a decision denied a caller of this server: %+v", who)
	}
}

// Private data of a public server requires a token.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := newEnv(t, func(s *Server) {
		guarded(limit.Rule{Policy: perHour("rlaas", 100), By: limit.ByDecision})(s)
		s.Public, s.Tokens = true, tokens(t, "# for the board\n\n the-first-token-1 \nboard the-second-token\n")
	})
	for authorization, want := range map[string]int{
		"": 401, "Bearer the-first-token-1": 200, "bearer the-second-token": 200,
		"token the-first-token-1": 200, "Bearer wrong": 401, "Bearer": 401, "Bearer board": 401,
		"the-first-token-1": 401, "Bearer # for the board": 401,
		"Basic OnRoZS1zZWNvbmQtdG9rZW4=": 200, "Basic Ondyb25n": 401, // :the-second-token, :wrong
		"Basic dGhlLXNlY29uZC10b2tlbjo=": 200, // as the name
		"Basic the-first-token-1":        401, "Digest the-first-token-1": 401,
		"Bearer  the-first-token-1": 200,
	} {
		r := s.send(http.MethodPost, "/v1/decisions", `{"policy":"rlaas","key":"a"}`,
			"Authorization", authorization)
		s.wants(r, want)
		if want == 401 && !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Bearer") {
			t.Error("no WWW-Authenticate")
		}
	}
	s.wants(s.get("/v1/regions"), 200)
}

// A spike from one address denies that address alone, whatever headers it sends: its denials take
// nothing from the limit that it shares with other addresses.
func TestSpike(t *testing.T) {
	t.Parallel()
	s := newEnv(t, func(s *Server) {
		proxies := limit.Proxies{netip.MustParsePrefix("127.0.0.0/8")}
		s.Guard = &limit.Guard{Store: limit.NewMemory(), Stats: &limit.Stats{},
			Caller: (&limit.Known{Proxies: proxies}).Of,
			Limits: []limit.Rule{{Policy: perHour("client", 20), By: limit.ByClient},
				{Policy: perHour("all", 40), By: limit.Global}}}
	})
	var allowed atomic.Int64
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			// the units left for the last address, which a client may have made up
			from := fmt.Sprintf("10.0.0.%d, 203.0.113.7", i)
			if s.get("/v1/regions", "X-Forwarded-For", from).status == http.StatusOK {
				allowed.Add(1)
			}
		})
	}
	for range 10 {
		s.wants(s.get("/v1/regions", "X-Forwarded-For", "198.51.100.1"), 200)
	}
	if all.Wait(); allowed.Load() != 20 {
		t.Errorf("the spike got %d answers, want 20", allowed.Load())
	}
	s.wants(s.get("/metrics"), 200, `limit_decisions_total{limit="client",outcome="denied"} 180`,
		`limit_near_misses_total{limit="client"}`, "limit_undecided_total 0",
		`serve_request_duration_seconds_count{code="429",route="GET /v1/regions"} 180`)
	s.wants(s.get("/", "X-Forwarded-For", "198.51.100.1"), 200, "Limits of this server",
		"Denied most often", "203.0.113.7")
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
