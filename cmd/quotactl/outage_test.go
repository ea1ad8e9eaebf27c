package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quotabudget/internal/ledger/redistest"
)

// Without the ledger, a person sees the units that may still be spent and the entries waiting to be
// recorded. The next call with the ledger records these.
func TestWithoutLedger(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{AOF: true})
	dir := t.TempDir()
	file := filepath.Join(dir, "quota.yaml")
	err := os.WriteFile(file, []byte("credentials: [{name: key1, when_unreachable: "+
		"{open: [youtube.videos.list], at_most: 3}}]\n"), 0o600)
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
	s.Kill()
	step(127, "no-such-program", "exec", "--method", "youtube.videos.list", "--count", "3", "--",
		"no-such-program") // takes nothing
	step(0, "left=map[default:1]", "exec", "--method", "youtube.videos.list", "--count", "2", "--",
		"true")
	step(125, "at_most is spent", "exec", "--method", "youtube.videos.list",
		"--count", "2", "--", "true")
	step(0, "charged 1 unit of default without the ledger, which cannot be reached",
		spend...)
	step(69, "at_most is spent", spend...)
	step(69, "key1 may spend 0 of 3 units of default without the ledger; 2 calls wait in the journal",
		"status")
	step(69, "ledger cannot be reached", "spend", "--method", "youtube.search.list")
	s.Restart(t)
	step(0, "charged 1 unit", spend...)
	step(0, "journal  default      3        2", "log", "--by", "source")
	step(0, `"used":5,`, "status", "-o", "json")
}
