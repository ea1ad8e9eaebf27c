package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

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
