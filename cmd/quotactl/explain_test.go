package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
)

// TestExplainCountsTheWindow: who spent before the window of what denies is not named, to the
// microsecond.
func TestExplainCountsTheWindow(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Clock: true})
	file := filepath.Join(t.TempDir(), "quota.yaml")
	limits := `credentials:
  - name: default
    limits:
      - {bucket: default, units: 100, window: 24h}
      - {bucket: search_list, units: 100, window: day, timezone: America/Los_Angeles}
`
	must(t, os.WriteFile(file, []byte(limits), 0o600))
	ask := func(at time.Time, line string) (code int, stdout string) {
		t.Helper()
		server.SetNow(t, at)
		args := append(strings.Fields(line), "--config", file, "-o", "json")
		code, stdout, stderr := call(t, args, "QUOTA_LEDGER", server.URL())
		if stderr != "" {
			t.Fatal(stderr)
		}
		return code, stdout
	}
	reset := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC) // midnight in Los Angeles
	for _, c := range []struct {
		bucket string
		// of the explanation and of the charge that is over, after the reset
		after, old time.Duration
		last       time.Duration // of the first charge that counts
	}{
		{"default", 25 * time.Hour, time.Hour, time.Hour + time.Microsecond},
		{"search_list", 25 * time.Hour, 24*time.Hour - time.Microsecond, 24 * time.Hour},
	} {
		ask(reset.Add(c.old), "spend --units 60 --label job=old --bucket "+c.bucket)
		ask(reset.Add(c.last), "spend --units 30 --label job=new --bucket "+c.bucket)
		code, out := ask(reset.Add(c.after), "explain --units 80 --bucket "+c.bucket)
		var got struct {
			Limit string
			By    []spender
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 75 {
			t.Fatalf("exit code %d, %v\n%s", code, err, out)
		}
		if len(got.By) != 1 || got.By[0].Labels["job"] != "new" || got.By[0].Units != 30 {
			t.Errorf("%s: %s", c.bucket, out)
		}
	}
}
