package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
)

// TestRequest: which responses are a success, which redirects are followed, and what the hosts that
// they lead to get to see.
func TestRequest(t *testing.T) {
	t.Parallel()
	var seen []string
	note := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, fmt.Sprintf("%s %s %q%s", r.Method, r.URL.Path, body,
			r.Header.Get("Referer")))
	}
	other := httptest.NewServer(http.HandlerFunc(note))
	t.Cleanup(other.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", note)
	for status := 301; status <= 308; status++ {
		mux.HandleFunc(fmt.Sprint("/here/", status), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/ok")
			w.WriteHeader(status)
		})
		mux.HandleFunc(fmt.Sprint("/there/", status), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", other.URL+"/internal")
			w.WriteHeader(status)
		})
	}
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
	})
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
		{"POST", "/here/307", nil, "responds with 200 OK after a redirect", post},
		{"POST", "/here/308", []int{200}, "", post},
		{"POST", "/here/302", nil, "changes the method", ""},
		{"POST", "/here/303", []int{200}, "changes the method", ""},
		{"POST", "/here/302", []int{302}, "", ""},
		{"GET", "/here/302", []int{200}, "", `GET /ok "body"`},
		{"POST", "/there/307", nil, "another host", ""},
		{"GET", "/there/301", nil, "another host", ""},
		{"POST", "/there/307", []int{307}, "", ""},
		{"GET", "/loop", nil, "redirects", ""},
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
		got := strings.Join(seen, ", ")
		if c.method == "GET" { // a body is dropped with a redirect of it
			got = strings.ReplaceAll(got, `""`, `"body"`)
		}
		if got != c.seen {
			t.Errorf("%s %s: the hosts saw %q, want %q", c.method, c.path, got, c.seen)
		}
	}
}

// TestRequestInward: a job whose URL names another host does not reach this machine or its link,
// whatever that name leads to.
func TestRequestInward(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	for _, first := range []string{"http://hooks.example/", "http://192.0.2.1/", "http://x.local/"} {
		request := httptest.NewRequestWithContext(t.Context(), "GET", first, nil)
		client := requestClient(request, nil)
		for _, to := range []string{"127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::]",
			"[::ffff:127.0.0.1]", "169.254.169.254", "[fe80::1]"} {
			if _, err := client.Get("http://" + to + port); !errors.Is(err, errInward) {
				t.Errorf("%s reaches %s: %v", first, to, err)
			}
		}
	}
	for _, named := range []string{"127.0.0.1", "localhost", "LOCALHOST"} {
		a := &app{Common: cli.Common{Stdout: io.Discard}}
		err := a.request(t.Context(), config.Request{Method: "GET", URL: "http://" + named + port,
			Success: []int{404}})
		if err != nil {
			t.Errorf("%s, which the job names: %v", named, err)
		}
	}
}
