package main

import (
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/cli/clitest"
)

// TestHostileLedger: no text in the ledger controls the terminal, and every format can be parsed.
func TestHostileLedger(t *testing.T) {
	const loud = "\x1b[2J\x1b]52;c;AAAA\x07\u009b31m\u202egnp\u2066\u2028\u200b\r\nend"
	ledger := filepath.Join(t.TempDir(), "ledger.db")
	ask := func(args ...string) (stdout, stderr string) {
		_, stdout, stderr = call(t, args, "QUOTA_LEDGER", "sqlite:"+ledger)
		return stdout, stderr
	}
	for _, line := range []string{
		"spend --units 9000 --label job=x --label region=US --method=",
		"spend --units 9000 --label job=x --label region=US --id k",
		"reserve 100 --ttl 1h --note x",
	} {
		ask(strings.Fields(line)...)
	}
	db, err := sql.Open("sqlite", ledger)
	must(t, err)
	label := url.QueryEscape(loud)
	labels := fmt.Sprintf("job=%[1]s&method=%[1]s&odd%[1]s=1&region=%[1]s", label)
	for _, change := range []struct{ statement, value string }{
		{"update entries set labels = ?", labels},
		{"update entries set id = ?", "id" + loud},
		{"update holds set note = ?", loud},
		{"update holds set id = ?", "default." + loud},
		{"update answers set decision = replace(decision, '\"Entry\":\"', '\"Entry\":\"' || ?)",
			`\u001b[2J\u009b\u202e`},
	} {
		result, err := db.Exec(change.statement, change.value)
		must(t, err)
		if n, err := result.RowsAffected(); n == 0 || err != nil {
			t.Fatalf("%s: %d rows, %v", change.statement, n, err)
		}
	}
	must(t, db.Close())
	ask("ledger", "check", "--repair", "--yes")
	for _, line := range []string{
		"status", "log", "log --by job", "log --by region", "top", "reservations",
		"explain --units 5000", "forecast", "costs", "config check",
		"spend --units 9000 --label job=x --label region=US --id k", "spend --units 5000",
		"release default.\x1b[2J",
		"draw default.\u009b 1", "commit \u202e", "spend --method \u202e",
		"spend --bucket \x1b[2J --units 1", "log --since \x1b", "\x1b[2J",
		"log --\x1b", "spend --units 1 --label \u202e=1", "costs \u2066", "status --config \x1b[2J",
		"status --credential \u202e",
	} {
		for _, format := range []string{"table", "json", "yaml"} {
			out, errs := ask(append(strings.Fields(line), "-o", format)...)
			if found := clitest.Loud(out + errs); found != "" {
				t.Errorf("%q -o %s: %q", line, format, found)
			}
			if format == "table" {
				continue
			}
			if err := yaml.Unmarshal([]byte(out), new(any)); err != nil { // JSON is also YAML
				t.Errorf("%q -o %s: %v\n%s", line, format, err, out)
			}
		}
	}
	out, _ := ask("__complete", "release", "")
	if clitest.Loud(strings.ReplaceAll(out, "\t", " ")) != "" ||
		!strings.Contains(out, "units left") {
		t.Errorf("completion: %q", out)
	}
	if out, _ := ask("log", "-o", "yaml"); !strings.Contains(out, `\e[2J`) {
		t.Errorf("the log lost what was written into it:\n%s", out)
	}
}
