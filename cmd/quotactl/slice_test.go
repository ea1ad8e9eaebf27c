package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quotabudget/internal/ledger/redistest"
)

// Without the ledger, a person sees what may still be spent and what waits to be recorded; with it
// again, the next call records that.
func TestWithoutLedger(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{AOF: true})
	dir := t.TempDir()
	file := filepath.Join(dir, "quota.yaml")
	err := os.WriteFile(file, []byte("credentials: [{name: key1, when_unreachable: "+
		"{open: [youtube.videos.list], slice: 3}}]\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"QUOTA_LEDGER": s.URL(), "QUOTA_STATE_DIR": dir, "QUOTA_CONFIG": file}
	step := func(code int, says string, args ...string) {
		t.Helper()
		var out bytes.Buffer
		got := run(t.Context(), args, &out, &out, func(name string) string { return env[name] })
		if got != code || !strings.Contains(out.String(), says) {
			t.Errorf("%q: code %d, want %d and %q:\n%s", args, got, code, says, &out)
		}
	}
	spend := []string{"spend", "--method", "youtube.videos.list"}
	step(0, "charged 1 unit", spend...)
	step(0, "slice of ", "reservations")
	s.Kill()
	for range 3 {
		step(0, "call is paid from the slice leased for that", spend...)
	}
	step(69, "; the slice leased for that is spent", spend...)
	step(69, "key1 has 0 of 3 units of default left, and 3 entries to record", "status")
	step(69, "ledger cannot be reached", "spend", "--method", "youtube.search.list")
	s.Restart(t)
	step(0, "charged 1 unit", spend...)
	step(0, "journal      3        3", "log", "--by", "source")
	step(0, `"used":5,`, "status", "-o", "json")
}
