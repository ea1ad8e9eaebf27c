package main

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"quotabudget/internal/catalog"
	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

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
			other.stderr.await(t, "msg=\"tick done\"", other.ended)
			close(h.proceed)
			stalled.signal(t, syscall.SIGCONT)
			stalled.stderr.await(t, "lease lost", stalled.ended)
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
