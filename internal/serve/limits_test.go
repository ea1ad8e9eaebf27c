package serve

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/limit"
	"quotabudget/internal/limit/caller"
	"quotabudget/internal/limit/guard"
)

func guarded(limits ...guard.Limit) func(*Server) {
	return func(s *Server) {
		known := &caller.Known{}
		s.Guard = &guard.Guard{Limits: limits, Store: limit.NewMemory(), Caller: known.Of,
			Hash: &guard.Hash{}}
	}
}

func perHour(name string, units int64) limit.Policy {
	return limit.Policy{Name: name, Units: units, Window: time.Hour, Algorithm: limit.Log}
}

// Making links is limited; following them is not, and neither is what watches the server.
func TestLinksAreLimited(t *testing.T) {
	t.Parallel()
	s := newStation(t, guarded(guard.Limit{Policy: perHour("links", 2), By: guard.ByClient,
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

// A decision is an answer, whatever it is: so many are allowed, and the rest is told when.
func TestDecisions(t *testing.T) {
	t.Parallel()
	s := newStation(t, guarded(guard.Limit{Policy: perHour("rlaas", 5), By: guard.ByDecision}))
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
	if d := ask("a", 0); d.Remaining != 0 {
		t.Errorf("a look: %+v", d)
	}
	if d := ask("b", 5); !d.Allowed {
		t.Errorf("another key: %+v", d)
	}
	if d := ask("b", 6); d.Allowed || d.RetryAfter != nil {
		t.Errorf("more than the limit: %+v", d)
	}
	for body, want := range map[string]int{
		`{"policy":"none","key":"a"}`: 404, `{"policy":"rlaas"}`: 422,
		`{"policy":"rlaas","key":"a","cost":-1}`: 422, `{"policy":"rlaas","key":""}`: 422,
		`{"policy":"rlaas","key":"a","cost":9999999999999999999}`: 422,
		`{`: 400,
	} {
		s.wants(s.send(http.MethodPost, "/v1/decisions", body), want)
	}
}

// What a public server keeps private needs a token.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := newStation(t, func(s *Server) {
		guarded(guard.Limit{Policy: perHour("rlaas", 100), By: guard.ByDecision})(s)
		s.Public, s.Tokens = true, NewTokens("# for the board\n\n one-token \ntwo-token\n")
	})
	for authorization, want := range map[string]int{
		"": 401, "Bearer one-token": 200, "bearer two-token": 200, "Bearer wrong": 401,
		"Bearer": 401, "Bearer  one-token": 401, "one-token": 401, "Bearer # for the board": 401,
		"Basic OnR3by10b2tlbg==": 200, "Basic Ondyb25n": 401, // :two-token, :wrong
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
