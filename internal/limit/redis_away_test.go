package limit_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/ledger/redisstore"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/limit"
)

// TestServerAway kills, restarts and pauses a server under load. Each route answers as
// configured, and normally once the server is back.
func TestServerAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	client, err := redisstore.Connect(t.Context(), server.URL())
	must(t, err)
	defer client.Close()
	g := &limit.Guard{
		Store: limit.NewRedis(client), Stats: &limit.Stats{},
		Route:  func(r *http.Request) string { return r.URL.Path },
		Caller: func(*http.Request) limit.Caller { return limit.Caller{Network: "10.0.0.1/32"} },
		Limits: []limit.Rule{
			{Policy: policy("open", 1<<20), By: limit.ByClient, Routes: []string{"/open"}, Open: true},
			{Policy: policy("closed", 1<<20), By: limit.ByClient, Routes: []string{"/closed"}},
		},
	}
	handler := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	get := func(path string) int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		h := w.Header()
		if w.Code == 503 && h.Get("Retry-After") == "" || path == "/closed" && w.Code == 200 &&
			h.Get("RateLimit") == "" {
			t.Errorf("%s: %d %v", path, w.Code, h)
		}
		return w.Code
	}
	end := make(chan struct{})
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				if code := get("/open"); code != 200 {
					t.Errorf("open: %d", code)
					return
				}
			}
		})
	}
	await := func(what string, want int) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); get("/closed") != want; {
			if time.Now().After(deadline) {
				t.Fatalf("%s: closed is not %d", what, want)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	await("at first", 200)
	server.Kill()
	await("killed", 503)
	if n := g.Stats.Undecided(); n == 0 {
		t.Error("nothing counted")
	}
	server.Restart(t)
	await("restarted", 200)
	must(t, syscall.Kill(server.PID(), syscall.SIGSTOP))
	await("stopped", 503)
	must(t, syscall.Kill(server.PID(), syscall.SIGCONT))
	await("continued", 200)
	close(end)
	load.Wait()
}
