package limit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quotabudget/internal/limit"
)

// serve answers GETs of a path by somebody and tells them: status, then the named header fields.
type serve struct {
	t       *testing.T
	handler http.Handler
	stats   limit.Stats
}

func newServe(t *testing.T, store limit.Store, limits ...limit.Rule) *serve {
	s := &serve{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /search", func(w http.ResponseWriter, r *http.Request) {})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {})
	g := &limit.Guard{
		Limits: limits, Store: store,
		Route: func(r *http.Request) string { _, pattern := mux.Handler(r); return pattern },
		Caller: func(r *http.Request) limit.Caller {
			key, rest, _ := strings.Cut(r.Header.Get("X-Key"), "@")
			organisation, tier, _ := strings.Cut(rest, "@")
			return limit.Caller{
				Network: r.RemoteAddr, Key: key, Organisation: organisation, Tier: tier}
		},
		Stats: &s.stats,
	}
	s.handler = g.Wrap(mux)
	return s
}

// denials returns how often each limit denied, or would have denied.
func (s *serve) denials() string {
	var all []string
	for _, c := range s.stats.Counts() {
		if n := c.Denied + c.Observed; n > 0 {
			all = append(all, fmt.Sprint(c.Policy, " ", n))
		}
	}
	return strings.Join(all, " ")
}

func (s *serve) get(path, address, key string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	r.RemoteAddr = address
	r.Header.Set("X-Key", key)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// fields checks header fields of a response. The value "" stands for a missing field.
func (s *serve) fields(w *httptest.ResponseRecorder, want map[string]string) {
	s.t.Helper()
	for field, value := range want {
		if got := w.Header().Get(field); got != value {
			s.t.Errorf("%s: %s, want %s", field, got, value)
		}
	}
}

func (s *serve) want(path, address, key string, status int) {
	s.t.Helper()
	if w := s.get(path, address, key); w.Code != status {
		s.t.Errorf("%s of %s %s: %d, want %d: %s", path, address, key, w.Code, status, w.Body)
	}
}

func policy(name string, units int64) limit.Policy {
	return limit.Policy{Name: name, Units: units, Window: time.Minute, Algorithm: limit.Log}
}

func TestWhoSharesALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServe(t, limit.NewMemory(),
			limit.Rule{Policy: policy("mine", 2), By: limit.ByClient},
			limit.Rule{Policy: policy("search", 3), By: limit.ByRoute, Routes: []string{"GET /search"}},
			limit.Rule{Policy: policy("company", 3), By: limit.ByOrganisation})
		s.want("/search", "a", "", 200)
		s.want("/search", "a", "", 200)
		s.want("/search", "a", "", 429) // the same caller
		s.want("/", "b", "", 200)       // another address
		s.want("/search", "b", "", 200)
		s.want("/search", "c", "", 429) // the same route
		s.want("/", "c", "", 200)       // another route
		s.want("/", "a", "k1@acme", 200)
		s.want("/", "b", "k1@acme", 200) // the key counts, not the address
		s.want("/", "c", "k1@acme", 429)
		s.want("/", "c", "k2@acme", 200)
		s.want("/", "c", "k2@acme", 429) // the organisation
		if got := s.denials(); got != "company 1 mine 2 search 1" {
			t.Errorf("denied by %s", got)
		}
		time.Sleep(time.Minute)
		s.want("/search", "a", "", 200)
	})
}

func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServe(t, limit.NewMemory(),
			limit.Rule{Policy: policy("all", 100), By: limit.Global},
			limit.Rule{Policy: policy(`se"arch`, 5), By: limit.ByClient, Cost: 2})
		s.fields(s.get("/", "a", ""), map[string]string{
			"RateLimit-Policy":  `"all";q=100;w=60, "se\"arch";q=5;w=60`,
			"RateLimit":         `"all";r=99;t=60, "se\"arch";r=3;t=60`,
			"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "3", "Retry-After": ""})
		time.Sleep(10*time.Second + time.Millisecond)
		// t counts the seconds until the first two units are free, not until all are
		s.fields(s.get("/", "a", ""), map[string]string{
			"RateLimit":         `"all";r=98;t=50, "se\"arch";r=1;t=50`,
			"X-RateLimit-Reset": "60"})
		w := s.get("/", "a", "")
		s.fields(w, map[string]string{"Content-Type": "application/problem+json",
			"Retry-After": "50", "RateLimit": `"all";r=98, "se\"arch";r=1;t=50`})
		var body struct {
			Type     string
			Status   int
			Violated []string `json:"violated-policies"`
		}
		err := json.Unmarshal(w.Body.Bytes(), &body)
		if err != nil || w.Code != 429 || body.Status != 429 ||
			len(body.Violated) != 1 || body.Violated[0] != `se"arch` ||
			!strings.HasSuffix(body.Type, "#quota-exceeded") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		time.Sleep(50*time.Second - 2*time.Millisecond)
		s.want("/", "a", "", 429)
		time.Sleep(time.Millisecond)
		s.want("/", "a", "", 200)
	})
}

func TestObserve(t *testing.T) {
	s := newServe(t, limit.NewMemory(),
		limit.Rule{Policy: policy("strict", 1), By: limit.ByClient, Observe: true},
		limit.Rule{Policy: policy("mild", 3), By: limit.ByClient})
	for range 3 {
		s.want("/", "a", "", 200)
	}
	s.want("/", "a", "", 429)
	if got := s.denials(); got != "mild 1 strict 2" {
		t.Errorf("denied by %s", got)
	}
}

type unreachable struct{}

func (unreachable) Salt(context.Context) ([]byte, error) { return nil, errors.New("no store") }

func (unreachable) Take(context.Context, []limit.Ask) (bool, error) {
	return false, errors.New("no store")
}

func TestUnreachable(t *testing.T) {
	limits := []limit.Rule{
		{Policy: policy("open", 1), By: limit.Global, Open: true},
		{Policy: policy("closed", 1), By: limit.Global, Routes: []string{"GET /search"}},
		{Policy: policy("key", 1), By: limit.ByKey}}
	s := newServe(t, unreachable{}, limits...)
	s.want("/", "a", "", 200) // no closed limit applies without an API key
	s.want("/", "a", "key", 503)
	s.want("/search", "a", "", 503)
}

func TestTiersAndStats(t *testing.T) {
	gold := policy("mine", 3)
	s := newServe(t, limit.NewMemory(), limit.Rule{Policy: policy("mine", 1), By: limit.ByClient,
		Tiers: map[string]*limit.Policy{"gold": &gold}})
	for _, status := range []int{200, 200, 200, 429} {
		s.want("/", "a", "k1@acme@gold", status)
	}
	for _, status := range []int{200, 429, 429} {
		s.want("/", "a", "", status)
	}
	want := limit.Counts{Policy: "mine", Allowed: 4, NearMiss: 0, Denied: 3}
	if got := s.stats.Counts(); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := s.stats.TopDenied(1); len(got) != 1 || got[0] != (limit.Denied{Who: "a", Times: 2}) {
		t.Errorf("%+v", got)
	}
}

// TestTopDenied finds a caller denied often among thousands denied once.
func TestTopDenied(t *testing.T) {
	s := newServe(t, limit.NewMemory(), limit.Rule{Policy: policy("none", 1), By: limit.Global})
	s.want("/", "first", "", 200)
	for i := range 3000 {
		s.want("/", fmt.Sprint("address ", i), "", 429)
		if i%10 == 0 {
			s.want("/", "hammer", "", 429)
		}
	}
	if got := s.stats.TopDenied(1); len(got) != 1 || got[0].Who != "hammer" {
		t.Errorf("%+v", got)
	}
}
