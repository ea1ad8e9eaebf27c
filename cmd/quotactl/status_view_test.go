package main

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/cli"
	"quotabudget/internal/cli/clitest"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

// A narrower terminal shows less, but always the headroom, and a word for why nothing remains.
func TestStatusFitsTheTerminal(t *testing.T) {
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	zone := "America/Los_Angeles"
	at := words.Time(now.Add(18*time.Hour + 3*time.Minute))
	limit := func(window string, zone *string, units, headroom, used, remaining int64,
		next words.Time) []report.LimitStatus {
		return []report.LimitStatus{{Window: window, Timezone: zone, Units: units,
			Headroom: headroom, Used: used, Remaining: remaining, NextFreeAt: next}}
	}
	list := report.Status{Credentials: []report.CredentialStatus{{
		Credential: "default", Mode: "enforce", At: now,
		Buckets: []report.BucketStatus{
			{Bucket: "video_batch_get_stats",
				Limits: limit("day", &zone, 10000, 500, 31, 9469, at)},
			{Bucket: "default", Limits: limit("24h", nil, 10000, 500, 9605, 0, at)},
			{Bucket: "video_insert", Suspension: report.Suspension{SuspendedUntil: at},
				Limits: limit("24h", nil, 100, 5, 10, 85, at)},
			{Bucket: "search_list", Limits: append(limit("24h", nil, 100, 5, 100, 0, at),
				limit("1h", nil, 0, 0, 0, 0, words.Time{})...)},
		}}}}
	for _, c := range []struct {
		width          int
		held           int64 // by reservations
		bar, head, day bool
	}{
		{0, 0, true, true, true},
		{170, 0, true, true, true},
		{120, 0, true, true, true},
		{110, 0, false, true, true},
		{100, 0, false, true, false},
		{80, 0, false, true, false},
		{80, 70, false, false, false},
	} {
		list.Credentials[0].Buckets[0].Held = c.held
		for _, color := range []bool{false, true} {
			var out strings.Builder
			s := cli.Screen{W: &out, Bars: true, Width: c.width, Color: color}
			drawStatus(s, list)
			for mark, want := range map[string]bool{"█": c.bar, "HEADROOM": c.head,
				"9,500+500": !c.head, "95+5": !c.head, "HELD": c.head != (c.width == 80),
				zone: c.day, "exhausted": true, "suspended": true, "closed": true, "9,469": true,
				"in 18h 3min": true, "video_batch_get_stats": true, "\x1b[31m": color,
				"\x1b[33m": color} {
				if strings.Contains(out.String(), mark) != want {
					t.Errorf("%d columns: %q must be there: %v\n%s", c.width, mark, want,
						out.String())
				}
			}
		}
	}
	two := list
	two.Credentials = append(two.Credentials[:1:1], report.CredentialStatus{Credential: "a1",
		Mode: "enforce", At: now, Buckets: []report.BucketStatus{{Bucket: "output/sonnet-4",
			Held: 5000, Limits: limit("month", &zone, 5_000_000, 0, 500_000, 4_500_000, at)}}})
	var narrow strings.Builder
	drawStatus(cli.Screen{W: &narrow, Bars: true, Width: 80}, two)
	clitest.Fits(t, 80, narrow.String())
	long := limit("month", nil, 100, 0, 1, 99, at)
	long[0].CountsFrom = at
	all := notes(cli.Screen{}, now, report.BucketStatus{Bucket: "default", Limits: long})
	if want := "default month counts from 2026-11-22 08:03:00Z"; len(all) != 1 ||
		!strings.HasPrefix(all[0], want) {
		t.Errorf("%q, want %s", all, want)
	}
	var plain strings.Builder
	drawStatus(cli.Screen{W: &plain}, list)
	if text := plain.String(); strings.Contains(text, "exhausted") ||
		!strings.Contains(text, "2026-11-22 08:03:00Z (in 18h 3min)") {
		t.Errorf("in a pipe:\n%s", text)
	}
}

// TestSystemLedger: a command without its own configuration, such as one started by cron, charges
// the ledger of the machine's configuration, and status shows both.
func TestSystemLedger(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	file := filepath.Join(dir, "system.yaml")
	must(t, os.WriteFile(file, []byte("ledger: sqlite:machine.db\n"), 0o600))
	var out, errs strings.Builder
	getenv := func(name string) string { return map[string]string{"HOME": dir + "/home"}[name] }
	for _, args := range [][]string{{"exec", "--units", "8", "--", "true"}, {"status"}} {
		a := &app{cli.Common{Stdout: &out, Stderr: &errs, Getenv: getenv, System: file}}
		if code := a.Execute(t.Context(), a.root(args), args); code != 0 {
			t.Fatalf("%v: %d %s", args, code, errs.String())
		}
	}
	want := "ledger sqlite://" + dir + "/machine.db\nconfiguration " + file + "\n"
	if text := out.String(); !strings.HasSuffix(text, want) ||
		!regexp.MustCompile(`(?m)^default +default +24h +8 `).MatchString(text) {
		t.Errorf("%s\nwant the end %s", text, want)
	}
	if _, err := os.Stat(dir + "/home"); err == nil {
		t.Error("a ledger was made in the home folder")
	}
}

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
