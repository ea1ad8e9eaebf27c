package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
)

// TestRequest: which responses are a success, and that no redirect is followed.
func TestRequest(t *testing.T) {
	t.Parallel()
	var seen []string
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, fmt.Sprintf("%s %s %q", r.Method, r.URL.Path, body))
	})
	mux.Handle("/away", http.RedirectHandler("/ok", http.StatusTemporaryRedirect))
	hook := httptest.NewServer(mux)
	t.Cleanup(hook.Close)
	const post = `POST /ok "body"`
	for _, c := range []struct {
		method, path string
		success      []int
		err, seen    string
	}{
		{"POST", "/ok", nil, "", post},
		{"POST", "/ok", []int{204}, "responds with 200 OK", post},
		{"POST", "/none", nil, "responds with 404 Not Found", ""},
		{"POST", "/none", []int{200, 404}, "", ""},
		{"POST", "/away", nil, "responds with 307", ""},
		{"GET", "/away", []int{307}, "", ""},
	} {
		seen = nil
		var out bytes.Buffer
		a := &app{Common: cli.Common{Stdout: &out}}
		err := a.request(t.Context(), config.Request{Method: c.method, URL: hook.URL + c.path +
			"?token=SECRET", Body: "body", Success: c.success})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s %s, success %v: %v, want %q", c.method, c.path, c.success, err, c.err)
		}
		if err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("the error has the token: %v", err)
		}
		if got := strings.Join(seen, ", "); got != c.seen {
			t.Errorf("%s %s: the host received %q, want %q", c.method, c.path, got, c.seen)
		}
	}
}
