package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/daemon"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

type daemonKey struct{}

// daemonCmd starts ingestor run and waits until it responds. Its output is in daemon.err once it
// has ended.
func daemonCmd(ts *testscript.TestScript, _ bool, _ []string) {
	cmd := exec.Command("ingestor", "run")
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "QUOTA_STATE_DIR", "YOUTUBE_API_KEY",
		"YOUTUBE_ENDPOINT", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	p, err := start(cmd)
	ts.Check(err)
	ts.Defer(func() {
		p.Process.Kill()
		<-p.ended
	})
	for p.url() == "" {
		select {
		case <-p.ended:
			ts.Fatalf("the daemon has ended: %s", p.stderr.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	*ts.Value(daemonKey{}).(**process) = p
}

func daemonOf(ts *testscript.TestScript) *process { return *ts.Value(daemonKey{}).(**process) }

// fetchCmd prints a response of the daemon: fetch PATH.
func fetchCmd(ts *testscript.TestScript, _ bool, args []string) {
	text, err := daemonOf(ts).get(args[0])
	ts.Check(err)
	_, err = ts.Stdout().Write(text)
	ts.Check(err)
}

// awaitCmd repeats a request until the response matches, and prints it: await PATH PATTERN.
func awaitCmd(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile(args[1])
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		text, err := daemonOf(ts).get(args[0])
		if err == nil && pattern.Match(text) {
			_, err = ts.Stdout().Write(text)
			ts.Check(err)
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("no %s in %s: %v\n%s", args[1], bytes.TrimSpace(text), err,
				daemonOf(ts).stderr.String())
		}
	}
}

func (p *process) get(path string) ([]byte, error) {
	resp, err := http.Get(p.url() + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// signalCmd sends the daemon a signal: signal HUP, or signal TERM, after which it must end with
// code 0.
func signalCmd(ts *testscript.TestScript, _ bool, args []string) {
	d := daemonOf(ts)
	if args[0] == "HUP" {
		ts.Check(d.Process.Signal(syscall.SIGHUP))
		return
	}
	ts.Check(d.Process.Signal(syscall.SIGTERM))
	<-d.ended
	ts.Check(os.WriteFile(ts.MkAbs("daemon.err"), []byte(d.stderr.String()), 0o600))
	if code := d.ProcessState.ExitCode(); code != 0 {
		ts.Fatalf("exit code %d: %s", code, d.stderr.String())
	}
}

// TestDaemonSettlesCalls: the daemon reads the end of a call that a proxy on its host has left
// open.
func TestDaemonSettlesCalls(t *testing.T) {
	t.Parallel()
	api, err := standin.New("openai")
	must(t, err)
	api.Prices = map[string]float64{"input": 0.25, "output": 2}
	var ahead atomic.Int64
	api.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	upstream := httptest.NewServer(api)
	t.Cleanup(upstream.Close)
	dir := t.TempDir()
	url := "sqlite://" + filepath.Join(dir, "ledger.db")
	file := configFile(t, fmt.Sprintf("ledger: %s\nupstreams: {openai: {endpoint: %s/}}\n"+
		"credentials: [{name: o1, upstream: openai, api_key: {env: KEY}, limits: "+
		"[{bucket: money, units: 1000000000, window: 24h}]}]\ningest: {regions: []}\n",
		url, upstream.URL))
	env := []string{"KEY=any", "QUOTA_STATE_DIR=" + dir}
	cfg, err := config.Search{Path: file, Getenv: func(name string) string {
		return map[string]string{"KEY": "any", "QUOTA_STATE_DIR": dir}[name]
	}}.Load(t.Context())
	must(t, err)
	l, err := ledger.Open(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	up, err := cli.Upstream(cfg, cfg.Credentials[0], l, slog.New(slog.DiscardHandler))
	must(t, err)
	r := httptest.NewRequest("POST", upstream.URL+"/v1/responses", strings.NewReader(
		`{"model":"gpt-5-mini","input":"[[output:9]]","background":true,"max_output_tokens":50}`))
	r.Header.Set("Content-Type", "application/json")
	resp, err := up.Transport.RoundTrip(r)
	must(t, err)
	io.Copy(io.Discard, resp.Body)
	ahead.Store(int64(time.Hour))

	begin(t, env, "ingestor", "run", "--config", file)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		entries, err := l.Entries(t.Context(), quota.Query{Credential: "o1", Bucket: "money"})
		must(t, err)
		if len(entries) == 1 && entries[0].Units == api.Counts().Units["money"] {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%v are booked, %v were billed", entries, api.Counts().Units)
		}
	}
}

const stalling = `
ledger: %s
catalog: sqlite://%s
credentials:
  - name: key1
    api_key: {env: YOUTUBE_API_KEY}
    limits: [{bucket: default, units: 10000, window: day, timezone: UTC}]
ingest:
  regions: [US]
  pages: 3
  schedule: "@every 1h"
  lease: 3s
  listen: ""
`

// TestStalledDaemon: a daemon that stops in the middle of a page for longer than its lease, as on a
// suspended machine, loses the lane to another daemon. Only the page in flight is bought twice, and
// there is one chart.
func TestStalledDaemon(t *testing.T) {
	for number := int64(1); number <= 3; number++ {
		t.Run(fmt.Sprint("page ", number), func(t *testing.T) {
			t.Parallel()
			h, env := holding(t, number)
			dir := t.TempDir()
			path := configFile(t, fmt.Sprintf(stalling,
				redistest.Start(t, redistest.Options{}).URL(), filepath.Join(dir, "catalog.db")))
			env = append(env, "QUOTA_CONFIG="+path)
			stalled := begin(t, env, "ingestor", "run", "--log-level", "debug")
			<-h.arrived
			stalled.signal(t, syscall.SIGSTOP)
			other := begin(t, env, "ingestor", "run", "--log-level", "debug")
			other.await(t, "msg=\"tick done\"")
			close(h.proceed)
			stalled.signal(t, syscall.SIGCONT)
			stalled.await(t, "lease lost")
			for _, p := range []*process{stalled, other} {
				p.signal(t, syscall.SIGTERM)
				if code := p.code(); code != 0 {
					t.Errorf("exit code %d: %s", code, p.stderr.String())
				}
			}

			cfg, err := config.Load(t.Context(), path, func(string) string { return "" })
			must(t, err)
			l, err := ledger.Open(t.Context(), cfg.Ledger)
			must(t, err)
			defer l.Close()
			entries, err := l.Entries(t.Context(), quota.Query{Credential: "key1",
				Bucket: quota.DefaultBucket})
			must(t, err)
			if asked := h.seen.Load(); asked != 4 || len(entries) != 4 {
				t.Errorf("%d pages were asked for, %d charged, want 4", asked, len(entries))
			}
			c, err := catalog.Open(t.Context(), cfg.Catalog)
			must(t, err)
			defer c.Close()
			charts, err := c.Charts(t.Context(), "US", 0)
			must(t, err)
			if len(charts) != 1 || charts[0].Pages != 3 || charts[0].CompletedAt.IsZero() {
				t.Errorf("charts %+v", charts)
			}
		})
	}
}

// TestDescribe requires that a daemon's forecast uses the resets and units of the price list.
func TestDescribe(t *testing.T) {
	env := map[string]string{"HOME": "/home"}
	cfg, err := config.Search{Path: "quota.yaml", Text: []byte(`
credentials: [{name: a1, upstream: anthropic}]
jobs:
  - {name: here, command: [true], schedule: "0 * * * *", cost: {bucket: money, units: 5}}
  - {name: cron, elsewhere: host1, schedule: "0 * * * *", cost: {bucket: money, units: 5}}
`), Getenv: func(name string) string { return env[name] }}.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	day := quota.Window{Calendar: "day", Zone: time.UTC}
	resets := map[string]quota.Window{"money": day, "requests": day}
	q := plan.Question{Credential: "a1", Resets: resets}
	if err := (&deps{cfg: cfg}).describe(t.Context(), &q); err != nil {
		t.Fatal(err)
	}
	if text := q.Amount("money", 21_600_000); text != "$21.60" {
		t.Error(text)
	}
	if q.Resets["money"].Calendar != "month" || q.Resets["requests"].IsCalendar() {
		t.Errorf("%v", q.Resets)
	}
	if len(q.Lanes) != 1 || q.Lanes[0].Job != "cron" {
		t.Errorf("%v", q.Lanes)
	}
	lanes, err := (&deps{cfg: cfg}).jobLanes(false) // a floor counts by the day, as in a plan
	if err != nil || lanes[0].Work.(*daemon.Command).Day != day {
		t.Errorf("%+v, %v", lanes, err)
	}
}
