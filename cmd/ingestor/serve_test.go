package main

import (
	"net/http"
	"regexp"
	"syscall"
	"testing"
)

var address = regexp.MustCompile(`serving address=(\S+)`)

// The demo answers with charts until a signal ends it, and a second one cannot take its address.
func TestServeDemo(t *testing.T) {
	t.Parallel()
	p := begin(t, nil, "ingestor", "serve", "--demo", "--listen", "127.0.0.1:0")
	p.stderr.await(t, "serving address=", p.ended)
	found := address.FindStringSubmatch(p.stderr.String())
	for path, want := range map[string]int{
		"/v1/charts/US": 200, "/v1/search?q=a": 200, "/readyz": 200, "/v1/charts/JP": 404,
	} {
		answer, err := http.Get("http://" + found[1] + path)
		must(t, err)
		must(t, answer.Body.Close())
		if answer.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, answer.Status, want)
		}
	}
	second := begin(t, nil, "ingestor", "serve", "--listen", found[1])
	if code := second.code(); code != 1 {
		t.Errorf("a second one on the same address ended with %d: %s", code, second.stderr.String())
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.code(); code != 0 {
		t.Errorf("ended with %d: %s", code, p.stderr.String())
	}
}

func TestServeUsage(t *testing.T) {
	t.Parallel()
	if p := begin(t, nil, "ingestor", "serve", "--listen", "8080"); p.code() != 64 {
		t.Errorf("an address without a port: %d: %s", p.code(), p.stderr.String())
	}
}
