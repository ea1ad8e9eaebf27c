package retryafter_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quotabudget/internal/limit"
	"quotabudget/retryafter"
)

// direct calls a handler without a network, so that a test can use fake time.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// api returns a handler that echoes bodies and allows 2 requests in 10s.
func api() http.Handler {
	g := &limit.Guard{
		Limits: []limit.Rule{{By: limit.Global, Policy: limit.Policy{
			Name: "p", Units: 2, Window: 10 * time.Second, Algorithm: limit.Log}}},
		Store:  limit.NewMemory(),
		Route:  func(*http.Request) string { return "" },
		Caller: func(*http.Request) limit.Caller { return limit.Caller{} },
	}
	return g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, r.Body)
	}))
}

func post(t *testing.T, ctx context.Context, client *http.Client, body io.Reader) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", "http://localhost/", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// TestWaits calls a real limiter three times as fast as it allows: no call is denied or early.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: &retryafter.Transport{Base: direct{api()}}}
		began := time.Now()
		for i := range 6 {
			status, text := post(t, t.Context(), client, strings.NewReader("hello"))
			if status != 200 || text != "hello" {
				t.Fatalf("%d: %d %q", i, status, text)
			}
		}
		if took := time.Since(began); took < 20*time.Second || took > 23*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// TestGivesUp: the denial is returned if waiting would not help.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &retryafter.Transport{Base: direct{api()}}
		client := &http.Client{Transport: transport}
		for range 2 {
			post(t, t.Context(), client, nil)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if status, _ := post(t, ctx, client, nil); status != 429 {
			t.Errorf("with a deadline that is too early: %d", status)
		}
		once := io.MultiReader(strings.NewReader("x"))
		if status, _ := post(t, t.Context(), client, once); status != 429 {
			t.Errorf("with a body that can be read once: %d", status)
		}
		transport.MaxWait = 5 * time.Second
		if status, _ := post(t, t.Context(), client, nil); status != 429 {
			t.Errorf("with a wait that is too long: %d", status)
		}
		if time.Since(began) != 0 {
			t.Errorf("waited %s", time.Since(began))
		}
		transport.MaxWait = 0
		ctx, cancel = context.WithCancel(t.Context())
		go func() { time.Sleep(time.Second); cancel() }()
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://localhost/", nil)
		if _, err := client.Do(req); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// TestSpread: a hundred clients that were denied together do not return together.
func TestSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		came := map[time.Duration]int{}
		began := time.Now()
		for range 100 {
			times := 0
			client := &http.Client{Transport: &retryafter.Transport{Base: direct{http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					if times++; times == 1 {
						w.Header().Set("Retry-After", "30")
						w.WriteHeader(429)
						return
					}
					came[time.Since(began).Truncate(300*time.Millisecond)]++
				})}}}
			began = time.Now()
			post(t, t.Context(), client, nil)
		}
		for at, n := range came {
			if at < 30*time.Second || at > 33*time.Second || n > 40 {
				t.Errorf("%d after %s", n, at)
			}
		}
	})
}

// TestAnswers lists which responses are retried, and when.
func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		method     string
		status     int
		retryAfter string
		waits      bool
	}{
		{"GET", 429, "7", true}, {"POST", 429, "7", true}, {"GET", 503, "7", true},
		{"POST", 503, "7", false}, {"GET", 500, "7", false}, {"GET", 429, "", false},
		{"GET", 429, "soon", false}, {"GET", 429, "-7", false}, {"GET", 429, "99999999999", false},
		{"GET", 429, "Sat, 01 Jan 2000 00:00:07 GMT", true},
	} {
		synctest.Test(t, func(t *testing.T) { // it is midnight, 1 January 2000
			times := 0
			client := &http.Client{Transport: &retryafter.Transport{Base: direct{http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					if times++; times == 1 {
						w.Header().Set("Retry-After", test.retryAfter)
						w.WriteHeader(test.status)
					}
				})}}}
			req, _ := http.NewRequest(test.method, "http://localhost/", nil)
			began := time.Now()
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			if waited := took >= 7*time.Second && took < 8*time.Second; waited != test.waits ||
				waited != (resp.StatusCode == 200) {
				t.Errorf("%+v: %d after %s", test, resp.StatusCode, took)
			}
		})
	}
}
