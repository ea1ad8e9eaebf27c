package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/standin"
)

var serving = regexp.MustCompile(`serving address=(\S+)`)

// address waits until the process serves, and returns its address.
func (p *process) address(t *testing.T) string {
	t.Helper()
	p.await(t, "serving address=")
	return serving.FindStringSubmatch(p.stderr.String())[1]
}

// The demo serves charts until a signal ends it. A second server on its address reports that.
func TestServeDemo(t *testing.T) {
	t.Parallel()
	p := begin(t, nil, "ingestor", "serve", "--demo", "--listen", "127.0.0.1:0")
	address, got := p.address(t), make(map[string]string)
	for path, want := range map[string]int{
		"/": 200, "/v1/charts/US": 200, "/v1/charts/US/history": 200, "/v1/search?q=a": 200,
		"/readyz": 200, "/v1/charts/JP": 404,
	} {
		status, body := read(t, "http://"+address+path)
		if status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
		got[path] = body
	}
	if !strings.Contains(got["/"], "backfill") {
		t.Errorf("the board is not filled: %s", got["/"])
	}
	// The test does not expect runs left out: there are none in the half hour before the reset.
	for _, trouble := range []string{"search_list is exhausted", "video_insert is suspended until",
		">report<", "keywords"} {
		if !strings.Contains(got["/"], trouble) {
			t.Errorf("the board of a bad day does not show %s", trouble)
		}
	}
	if n := strings.Count(got["/v1/charts/US/history"], `"run":`); n != demoTicks {
		t.Errorf("%d charts, want %d", n, demoTicks)
	}
	second := begin(t, nil, "ingestor", "serve", "--listen", address)
	if code := second.code(); code != 1 {
		t.Errorf("a second one on the same address ended with %d: %s", code, second.stderr.String())
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.code(); code != 0 {
		t.Errorf("ended with %d: %s", code, p.stderr.String())
	}
}

// The last sweep of a demo never ends in the future, even on a slow machine.
func TestDemoTick_EndsByNow(t *testing.T) {
	t.Parallel()
	env := map[string]string{"QUOTA_STATE_DIR": t.TempDir()}
	a := &app{cli.Common{Getenv: func(name string) string { return env[name] }}}
	cfg, err := a.demoConfig(t.Context(), "")
	must(t, err)
	must(t, a.demoTick(t.Context(), *cfg, &standin.YouTube{}, time.Now()))
	c, err := catalog.Open(t.Context(), cfg.Catalog)
	must(t, err)
	defer c.Close()
	runs, err := c.Runs(t.Context(), time.Time{}, 1)
	must(t, err)
	if now := time.Now(); len(runs) != 1 || runs[0].EndedAt.After(now) {
		t.Errorf("at %v the demo has %+v", now, runs)
	}
}

const limitedServer = `serve:
  listen: 127.0.0.1:0
  public: true
  token_file: tokens
  trusted_proxies: [127.0.0.1/32]
  store: memory
  when_unreachable: open
  limits:
    - {name: search, route: "GET /v1/search", per: client, requests: 30, window: 1m, algorithm: log}
    - {name: links, route: "POST /v1/links", per: client, requests: 10, window: 60s, algorithm: log,
       count_denied: true}
    - {name: all, per: client, requests: 600, window: 1m, algorithm: counter}
    - {name: everybody, per: global, requests: 100000, window: 1h, algorithm: counter, shards: 8}
  policies:
    - {name: rlaas, requests: 5, window: 10s, algorithm: log}
`

// Both programs that serve apply the configured limits to callers, and decide for other programs.
func TestServeLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "tokens"), []byte("a-long-token-0123\n"), 0o644))
	config := filepath.Join(dir, "quota.yaml")
	must(t, os.WriteFile(config, []byte("ingest: {listen: ''}\n"+limitedServer), 0o600))
	env := []string{"YOUTUBE_ENDPOINT=" + listening(t, &standin.YouTube{}) + "/",
		"YOUTUBE_API_KEY=any", "QUOTA_STATE_DIR=" + dir}
	for _, command := range []string{"serve", "run"} {
		p := begin(t, env, "ingestor", command, "--config", config)
		p.await(t, "other users can read a file of secrets: chmod 600 it\" file="+
			filepath.Join(dir, "tokens"))
		base := "http://" + p.address(t)
		codes := make(map[int]int)
		send := func(method, path, body string) {
			r, err := http.NewRequest(method, base+path, strings.NewReader(body))
			must(t, err)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-Forwarded-For", "203.0.113.7")
			r.Header.Set("Authorization", "Bearer a-long-token-0123")
			answer, err := http.DefaultClient.Do(r)
			must(t, err)
			must(t, answer.Body.Close())
			codes[answer.StatusCode]++
		}
		for range 35 {
			send(http.MethodGet, "/v1/search?q=a", "")
		}
		for range 12 {
			send(http.MethodPost, "/v1/links", `{"to":"/charts/US"}`)
		}
		for range 7 {
			send(http.MethodPost, "/v1/decisions", `{"policy":"rlaas","key":"a","cost":1}`)
		}
		if codes[200] != 30+7 || codes[201] != 10 || codes[429] != 5+2 {
			t.Errorf("%s: answers by code: %v", command, codes)
		}
		p.signal(t, syscall.SIGTERM)
		if code := p.code(); code != 0 {
			t.Errorf("%s ended with %d: %s", command, code, p.stderr.String())
		}
	}
}

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
	base := "http://" + p.address(t)
	p.await(t, "lanes run")
	must(t, os.WriteFile(config, fmt.Appendf(nil, text, "US, BR", false), 0o600))
	p.signal(t, syscall.SIGHUP)
	p.await(t, "lanes=2")
	for _, path := range []string{"/v1/regions", "/charts"} {
		if status, body := read(t, base+path); status != 200 || !strings.Contains(body, "BR") {
			t.Errorf("%s: %d without the new region: %s", path, status, body)
		}
	}
	must(t, os.WriteFile(config, fmt.Appendf(nil, text, "US, BR", true), 0o600))
	p.signal(t, syscall.SIGHUP)
	p.await(t, "listen and serve cannot change")
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
	base := "http://" + p.address(t)
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

// daemonConfig configures a daemon with one region, of which a tick is due at once.
const daemonConfig = `
credentials:
  - name: key1
    api_key: {env: YOUTUBE_API_KEY}
    limits: [{bucket: default, units: 1000000, window: 24h}]
ingest: {regions: [US], schedule: "@every 1s", stagger: 0s, pages: 2, listen: "127.0.0.1:0"}
`

// TestHangupWhileDraining: SIGHUP does not end a daemon that is storing its last page.
func TestHangupWhileDraining(t *testing.T) {
	t.Parallel()
	h, env := holding(t, 1)
	p := begin(t, env, "ingestor", "run", "--config", configFile(t, daemonConfig))
	<-h.arrived
	p.signal(t, syscall.SIGTERM)
	for err := error(nil); err == nil; { // a draining daemon no longer serves health checks
		_, err = p.get("healthz")
	}
	p.signal(t, syscall.SIGHUP)
	close(h.proceed)
	if code := p.code(); code != 0 || !strings.Contains(p.stderr.String(), "msg=ended") {
		t.Errorf("%v: %s", p.ProcessState, p.stderr.String())
	}
}

// TestHangupWhileStarting: SIGHUP does not end a daemon that waits for its ledger.
func TestHangupWhileStarting(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	p := begin(t, []string{"YOUTUBE_API_KEY=any",
		"QUOTA_LEDGER=redis://" + silent.Addr().String() + "/0"}, "ingestor", "run")
	conn, err := silent.Accept()
	must(t, err)
	p.signal(t, syscall.SIGHUP)
	silent.Close()
	conn.Close()
	if code := p.code(); code != 69 {
		t.Errorf("%v: %s", p.ProcessState, p.stderr.String())
	}
}
