package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/standin"
)

// read returns the status and the body of a response.
func read(t *testing.T, url string) (status int, body string) {
	t.Helper()
	answer, err := http.Get(url)
	must(t, err)
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	must(t, answer.Body.Close())
	return answer.StatusCode, string(text)
}

// A region that a reload adds is served, too. A reload that changes serve: is refused, because it
// would have no effect before a restart.
func TestServeReload(t *testing.T) {
	t.Parallel()
	const text = `ingest: {listen: '', regions: [%s], schedule: "@every 1h"}
serve: {listen: "127.0.0.1:0", public: %t}
`
	config := configFile(t, fmt.Sprintf(text, "US", false))
	env := []string{"YOUTUBE_ENDPOINT=" + listening(t, &standin.YouTube{}) + "/",
		"YOUTUBE_API_KEY=any", "QUOTA_STATE_DIR=" + t.TempDir()}
	p := begin(t, env, "ingestor", "run", "--config", config)
	p.stderr.await(t, "serving address=", p.ended)
	base := "http://" + address.FindStringSubmatch(p.stderr.String())[1]
	p.stderr.await(t, "lanes run", p.ended)
	must(t, os.WriteFile(config, fmt.Appendf(nil, text, "US, BR", false), 0o600))
	p.signal(t, syscall.SIGHUP)
	p.stderr.await(t, "lanes=2", p.ended)
	for _, path := range []string{"/v1/regions", "/charts"} {
		if status, body := read(t, base+path); status != 200 || !strings.Contains(body, "BR") {
			t.Errorf("%s: %d without the new region: %s", path, status, body)
		}
	}
	must(t, os.WriteFile(config, fmt.Appendf(nil, text, "US, BR", true), 0o600))
	p.signal(t, syscall.SIGHUP)
	p.stderr.await(t, "listen and serve cannot change", p.ended)
}

// TestServeStoreAway: while Redis cannot be reached, one line is logged, requests pass as
// configured, and decisions are answered with 503.
func TestServeStoreAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	p := begin(t, []string{"QUOTA_STATE_DIR=" + t.TempDir()}, "ingestor", "serve", "--config",
		configFile(t, `ledger: redis://`+server.Addr+`
serve:
  listen: 127.0.0.1:0
  store: redis
  when_unreachable: open
  limits: [{name: all, per: client, requests: 1000, window: 1m}]
  policies: [{name: rlaas, requests: 5, window: 10s}]
`))
	p.stderr.await(t, "serving address=", p.ended)
	base := "http://" + address.FindStringSubmatch(p.stderr.String())[1]
	server.Kill()
	for range 3 {
		if status, body := read(t, base+"/v1/sweeps"); status != 200 {
			t.Errorf("%d %s", status, body)
		}
		answer, err := http.Post(base+"/v1/decisions", "application/json",
			strings.NewReader(`{"policy":"rlaas","key":"a"}`))
		must(t, err)
		must(t, answer.Body.Close())
		if answer.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a decision: %s", answer.Status)
		}
	}
	if n := strings.Count(p.stderr.String(), "level=ERROR"); n != 1 {
		t.Errorf("logged %d times: %s", n, p.stderr.String())
	}
}
