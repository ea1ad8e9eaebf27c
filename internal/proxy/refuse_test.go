package proxy_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestForwards: a program is metered by pointing it at the proxy, which drops the program's key.
func TestForwards(t *testing.T) {
	s := open(t, units(100))
	for _, query := range []string{"", "&key=own", "&$key=own", "&%6Bey=own"} {
		a := s.get(t, chart+query, "X-Goog-Api-Key", "own", "Cookie", "session=own", "Referer",
			"http://own.example/")
		if a.status != http.StatusOK || !json.Valid([]byte(a.body)) {
			t.Errorf("%s: %d %.60q", query, a.status, a.body)
		}
		asked := s.Asked.Load()
		if asked.RequestURI != chart || asked.Header.Get("X-Goog-Api-Key") != canary ||
			asked.Header.Get("Cookie")+asked.Header.Get("Referer") != "" {
			t.Errorf("the upstream was asked %+v", asked)
		}
	}
	if a := s.do(t, "POST", rate, ""); a.status != http.StatusOK {
		t.Errorf("POST: %d %s", a.status, a.body)
	}
	s.Counted(t, 5, 54)
}

// TestRefuses: each refusal says what happened, in Google's form and as a problem, and a denial
// also when to retry.
func TestRefuses(t *testing.T) {
	s := open(t, units(1))
	a := s.get(t, chart)
	a.limits(t, `"default 24h";q=1;w=86400`, `"default 24h";r=0`)
	if a.status != http.StatusOK {
		t.Fatal(a)
	}
	s.SetNow(noon.Add(24*time.Hour - 1500*time.Millisecond))
	a = s.get(t, chart)
	a.limits(t, `"default 24h";q=1;w=86400`, `"default 24h";r=0;t=2`)
	p := a.refused(t, http.StatusTooManyRequests)
	if !strings.HasSuffix(p.Type, "#quota-exceeded") || !slices.Equal(p.Violated,
		[]string{"default 24h"}) || a.header.Get("Retry-After") != "2" || p.Limit != "default 24h" ||
		p.RetryAt != "2026-06-02T19:00:00.000000Z" ||
		p.Error.Errors[0].Reason != "quotaExceeded" || p.Error.Status != "RESOURCE_EXHAUSTED" ||
		p.Error.Details[0].Metadata["retry_at"] != p.RetryAt || len(p.Charged) != 0 {
		t.Errorf("Retry-After %s, %s", a.header.Get("Retry-After"), a.body)
	}
	s.SetNow(noon.Add(24*time.Hour - time.Microsecond))
	if a := s.get(t, chart); a.header.Get("Retry-After") != "1" {
		t.Errorf("a microsecond before: Retry-After %s", a.header.Get("Retry-After"))
	}
	none := s.get(t, "/youtube/v3/unknown")
	if none.refused(t, http.StatusNotFound); none.header.Get("RateLimit") != "" {
		t.Errorf("what nobody decided has limits: %v", none.header)
	}
	s.get(t, search).refused(t, http.StatusNotFound) // a bucket without a limit
	dear := []quota.Cost{{Bucket: "default", Units: 2}}
	s.Budget.Prices["youtube.videoCategories.list"] = dear
	a = s.get(t, categories)
	if a.refused(t, http.StatusUnprocessableEntity); a.header.Get("Retry-After") != "" {
		t.Errorf("a cost that never fits: Retry-After %s", a.header.Get("Retry-After"))
	}
	s.Key = func() (string, error) { return "", errors.New("no key") }
	s.get(t, chart).refused(t, http.StatusInternalServerError)
	s.Key = func() (string, error) { return canary, nil }
	s.SetNow(noon.Add(48 * time.Hour))
	s.Counted(t, 1, 1)
	must(t, s.Ledger.Suspend(t.Context(), quota.Suspension{Credential: "key1", Bucket: "default",
		Until: noon.Add(49 * time.Hour)}))
	a = s.get(t, chart)
	a.limits(t, `"default 24h";q=1;w=86400`, `"default 24h";r=0`)
	if p := a.refused(t, http.StatusTooManyRequests); a.header.Get("Retry-After") != "3600" ||
		!strings.HasSuffix(p.Type, "#temporary-reduced-capacity") {
		t.Errorf("suspended: %v %s", a.header, a.body)
	}
	must(t, s.Ledger.Suspend(t.Context(),
		quota.Suspension{Credential: "key1", Bucket: "default"}))
	a = s.do(t, "PATCH", "/youtube/v3/captions", "")
	a.refused(t, http.StatusMethodNotAllowed)
	if allowed := a.header.Get("Allow"); allowed != "DELETE, GET, POST, PUT" {
		t.Errorf("Allow %q", allowed)
	}
	s.Server.Close()
	// a kept connection that the proxy has not seen close yet would count as sent
	s.Base.(*http.Transport).CloseIdleConnections()
	// A request that never left is not charged, and its response says so.
	p = s.get(t, chart).refused(t, http.StatusBadGateway)
	if used := s.Used(t); used != 1 || len(p.Charged) != 0 ||
		strings.Contains(p.Detail, "charged") {
		t.Errorf("%d units, got %+v", used, p)
	}
	s.Ledger.Close()
	s.get(t, chart).refused(t, http.StatusServiceUnavailable)
}

// TestDenialOf24Hours requires that a denial by the limit of 24 hours alone says so.
func TestDenialOf24Hours(t *testing.T) {
	day := quota.Limit{Bucket: "default", Units: 1,
		Window: quota.Window{Calendar: "day", Zone: time.UTC}}
	s := open(t, append(units(1), day))
	s.get(t, chart)
	const note = "only default 24h denies it: the upstream's day still has 1 unit of default; to "
	for at, want := range map[time.Time]bool{noon: false, noon.Add(13 * time.Hour): true} {
		s.SetNow(at)
		a := s.get(t, chart)
		p := a.refused(t, http.StatusTooManyRequests)
		if strings.Contains(p.Detail, note) != want ||
			a.header.Get("X-Should-Retry") != "false" { // clients would try again after a minute
			t.Errorf("%s: %s %v", at, p.Detail, a.header)
		}
	}
}

// TestAnswersKeepToThemselves: the upstream's headers for browsers, about its own address and about
// web pages, are not passed on.
func TestAnswersKeepToThemselves(t *testing.T) {
	s := open(t, units(10))
	dropped := []string{"Set-Cookie", "Access-Control-Allow-Origin", "Alt-Svc",
		"Access-Control-Allow-Credentials", "Strict-Transport-Security", "Clear-Site-Data"}
	s.Answering(func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range dropped {
			w.Header().Set(name, "a")
		}
	})
	a := s.get(t, chart)
	for _, name := range dropped {
		if got := a.header.Get(name); got != "" || a.status != 200 {
			t.Errorf("%d, %s: %s", a.status, name, got)
		}
	}
}

// TestAccept: only a request that names problem+json gets it.
func TestAccept(t *testing.T) {
	s := open(t, units(1))
	for accept, want := range map[string]string{
		"": "application/json; charset=utf-8", "*/*": "application/json; charset=utf-8",
		"application/json":                          "application/json; charset=utf-8",
		"application/problem+json":                  "application/problem+json",
		"text/html, Application/Problem+JSON;q=0.5": "application/problem+json",
		"application/problem+json;q=0":              "application/json; charset=utf-8",
	} {
		a := s.get(t, "/youtube/v3/unknown", "Accept", accept)
		if a.refused(t, http.StatusNotFound); a.header.Get("Content-Type") != want {
			t.Errorf("Accept %q: %s", accept, a.header.Get("Content-Type"))
		}
	}
}

// TestPassesErrors: the upstream's own errors reach the program whole, even cut off at 1 MiB.
func TestPassesErrors(t *testing.T) {
	s := open(t, units(100), func(s *env) { s.Standin.Faults = []string{"403-quota@1"} })
	if a := s.get(t, chart); a.status != 403 || !strings.Contains(a.body, "quotaExceeded") {
		t.Errorf("got %+v", a)
	}
	if p := s.get(t, chart).refused(t, 429); p.Limit != quota.Suspended {
		t.Errorf("got %+v", p)
	}
	must(t, s.Budget.Resume(t.Context(), "default"))
	s.Answering(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "2000000")
		w.WriteHeader(500)
		io.WriteString(w, strings.Repeat("x", 2_000_000))
	})
	if a := s.get(t, chart); a.status != 500 || len(a.body) != 1<<20 {
		t.Errorf("got %d, %d bytes", a.status, len(a.body))
	}
}
