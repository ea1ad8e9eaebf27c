package meter_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/youtube/youtubetest"
)

// proxied starts the proxy before a station and returns its address.
func proxied(t testing.TB, s *station) string {
	t.Helper()
	to, err := url.Parse(s.upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(meter.Proxy(s.Transport, to))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// TestProxy: a program of any language is metered by pointing it at the proxy; the key that it sends is dropped.
func TestProxy(t *testing.T) {
	onLedgers(t, func(t *testing.T, open func(testing.TB, *youtubetest.Server, []quota.Limit) *station) {
		s := open(t, &youtubetest.Server{}, units(100))
		base := proxied(t, s)
		for _, query := range []string{"", "&key=own", "&access_token=own", "&$key=own", "&a;key=own"} {
			r, _ := http.NewRequestWithContext(t.Context(), "GET", base+chart+query, nil)
			r.Header.Set("X-Goog-Api-Key", "own")
			r.Header.Set("Authorization", "Bearer own")
			status, body, err := read(http.DefaultClient.Do(r))
			if err != nil || status != http.StatusOK || !json.Valid([]byte(body)) {
				t.Errorf("%s: %d %.60q %v", query, status, body, err)
			}
			if asked := s.asked.Load(); strings.Contains(asked.RequestURI, "own") || asked.Header.Get("Authorization") != "" {
				t.Errorf("the upstream was asked %+v", asked)
			}
		}
		resp, err := http.Post(base+rate, "application/json", strings.NewReader("{}"))
		if status, _, err := read(resp, err); status != http.StatusNoContent && status != http.StatusOK || err != nil {
			t.Errorf("POST: %d %v", status, err)
		}
		s.counted(t, 6, 55)
	})
}

// TestProxyRefuses: a denial is told as problem+json, with when to come back.
func TestProxyRefuses(t *testing.T) {
	s := open(t, &youtubetest.Server{}, units(1))
	base := proxied(t, s)
	problem := func(path string, want int) (p map[string]any, header http.Header) {
		t.Helper()
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != want || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", path, resp.StatusCode, resp.Header)
		}
		if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || p["status"] != float64(want) || p["title"] == "" {
			t.Errorf("%s: %v %v", path, p, err)
		}
		return p, resp.Header
	}
	if status, _, err := read(http.Get(base + chart)); status != http.StatusOK || err != nil {
		t.Fatal(status, err)
	}
	s.clock.Set(noon.Add(24*time.Hour - 1500*time.Millisecond))
	p, header := problem(chart, http.StatusTooManyRequests)
	if header.Get("Retry-After") != "2" || p["limit"] != "default 24h" || p["retry_at"] != "2026-06-02T19:00:00.000000Z" {
		t.Errorf("Retry-After %s, %v", header.Get("Retry-After"), p)
	}
	s.clock.Set(noon.Add(24*time.Hour - time.Microsecond))
	if _, header := problem(chart, http.StatusTooManyRequests); header.Get("Retry-After") != "1" {
		t.Errorf("a microsecond before: Retry-After %s", header.Get("Retry-After"))
	}
	problem("/youtube/v3/unknown", http.StatusNotFound)
	problem(search, http.StatusNotFound) // a bucket without a limit
	problem(strings.Replace(rate, "rate", "unknown", 1), http.StatusNotFound)
	s.Budget.Prices["youtube.videoCategories.list"] = []quota.Cost{{Bucket: "default", Units: 2}}
	if p, header := problem(categories, http.StatusUnprocessableEntity); header.Get("Retry-After") != "" {
		t.Errorf("a cost that never fits: %v, Retry-After %s", p, header.Get("Retry-After"))
	}
	s.Key = func() (string, error) { return "", errors.New("no key") }
	problem(chart, http.StatusInternalServerError)
	s.Key = func() (string, error) { return canary, nil }
	s.clock.Set(noon.Add(48 * time.Hour))
	s.upstream.Close()
	problem(chart, http.StatusBadGateway)
	s.ledger.Close()
	problem(chart, http.StatusServiceUnavailable)
}

// TestProxyPassesErrors: the upstream's own errors reach the program whole, even cut off at 1 MiB.
func TestProxyPassesErrors(t *testing.T) {
	s := open(t, &youtubetest.Server{Faults: faults(t, "403-quota@1")}, units(100))
	base := proxied(t, s)
	if status, body, err := read(http.Get(base + chart)); status != 403 || !strings.Contains(body, "quotaExceeded") || err != nil {
		t.Errorf("got %d %s %v", status, body, err)
	}
	if status, body, err := read(http.Get(base + chart)); status != 429 || !strings.Contains(body, quota.Suspended) || err != nil {
		t.Errorf("got %d %s %v", status, body, err)
	}
	if err := s.Budget.Resume(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	s.upstream.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "2000000")
		w.WriteHeader(500)
		io.WriteString(w, strings.Repeat("x", 2_000_000))
	})
	if status, body, err := read(http.Get(base + chart)); status != 500 || len(body) != 1<<20 || err != nil {
		t.Errorf("got %d, %d bytes, %v", status, len(body), err)
	}
}
