package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"quotabudget/internal/standin"
)

// aviary is an upstream that looks for the canary in every request, and misbehaves as a test
// requires.
type aviary struct {
	standin.YouTube
	answer http.HandlerFunc // nil for the stand-in

	mu       sync.Mutex
	sung     int      // requests with the key in its header
	sighting []string // other places of the key
}

func (a *aviary) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.look(r)
	if a.answer != nil {
		a.answer(w, r)
		return
	}
	a.YouTube.ServeHTTP(w, r)
}

func (a *aviary) look(r *http.Request) {
	header := r.Header.Clone()
	mine := header.Values("X-Goog-Api-Key")
	header.Del("X-Goog-Api-Key")
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(mine) == 1 && mine[0] == canary() {
		a.sung++
	}
	if rest := fmt.Sprint(r.URL, header, r.Host, string(body)); strings.Contains(rest, canary()) {
		a.sighting = append(a.sighting, rest)
	}
}

// songs returns how many requests had the key in its header.
func (a *aviary) songs() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sung
}

func listening(t *testing.T, h http.Handler) string {
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL + "/"
}

// echo returns a handler whose body repeats the key.
func echo(status int, kind, form string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("X-Echo", r.Header.Get("X-Goog-Api-Key"))
		w.WriteHeader(status)
		fmt.Fprintf(w, form, r.Header.Get("X-Goog-Api-Key"))
	}
}

// wantNoLeak checks what the upstream received and what an ended program printed.
func (a *aviary) wantNoLeak(t *testing.T, p *process) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, where := range a.sighting {
		t.Errorf("the upstream was sent the key elsewhere than in its header: %s", where)
	}
	if n := a.Counts().KeyInURL; n > 0 {
		t.Errorf("%d requests had a key in their URL", n)
	}
	for name, text := range map[string]string{"stdout": p.stdout.String(),
		"stderr": p.stderr.String()} {
		if holdsKey([]byte(text)) {
			t.Errorf("the key is on %s:\n%s", name, text)
		}
	}
}
