package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/cli"
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
