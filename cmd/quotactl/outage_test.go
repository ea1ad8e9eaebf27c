package main

import (
	"bytes"
	"errors"
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

// TestWithoutJournal: with at_most, nothing passes that is not in the journal. Without it, each
// call reports that it is not metered, also if the ledger was never reached.
func TestWithoutJournal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		open, state, says string
		code              int
	}{
		{"at_most: 3", "state", "without the ledger, which cannot be reached", 0},
		{"at_most: 3", "quota.yaml/state", "not a directory", 69},
		{"", "state", "without the ledger, which cannot be reached", 0},
		{"", "quota.yaml/state", "call passes unmetered", 0},
	} {
		for _, ledger := range []string{"redis://127.0.0.1:1/0", "sqlite:damaged.db"} {
			dir := t.TempDir()
			damaged, file := filepath.Join(dir, "damaged.db"), filepath.Join(dir, "quota.yaml")
			err := errors.Join(os.WriteFile(damaged, []byte("no ledger"), 0o600),
				os.WriteFile(file, []byte("credentials: [{name: key1, when_unreachable: "+
					"{open: [youtube.videos.list], "+test.open+"}}]\n"), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			env := map[string]string{"QUOTA_STATE_DIR": filepath.Join(dir, test.state),
				"QUOTA_CONFIG": file,
				"QUOTA_LEDGER": strings.Replace(ledger, "damaged.db", damaged, 1)}
			var out bytes.Buffer
			code := run(t.Context(), []string{"spend", "--method", "youtube.videos.list"}, &out,
				&out, func(name string) string { return env[name] })
			if code != test.code || !strings.Contains(out.String(), test.says) {
				t.Errorf("%s, %s, %s: code %d, want %d and %q:\n%s", test.open, test.state,
					ledger, code, test.code, test.says, &out)
			}
		}
	}
}
