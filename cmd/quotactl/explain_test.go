package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// TestExplainCountsTheWindow: spending before the window of the denying limit is not listed, to the
// microsecond.
func TestExplainCountsTheWindow(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Clock: true})
	s := newShell(t, server.URL(), `credentials:
  - name: default
    limits:
      - {bucket: default, units: 100, window: 24h}
      - {bucket: search_list, units: 100, window: day, timezone: America/Los_Angeles}
`)
	ask := func(at time.Time, line string) (code int, out string) {
		server.SetNow(t, at)
		return s.run(append(strings.Fields(line), "-o", "json")...)
	}
	reset := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC) // midnight in Los Angeles
	for _, c := range []struct {
		bucket string
		// times of the explanation and of the charge that no longer counts, after the reset
		after, old time.Duration
		last       time.Duration // time of the first charge that counts, after the reset
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

// TestExplainNamesTheRunaway: three jobs share a day with an even pace. One of them uses far more
// than it declared, and the pace denies it. explain lists it first, with its units.
func TestExplainNamesTheRunaway(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Clock: true})
	server.SetNow(t, time.Date(2026, 6, 1, 6, 0, 0, 0, time.UTC))
	s := newShell(t, server.URL(), `credentials:
  - name: default
    limits: [{bucket: default, units: 1000, window: day, timezone: UTC}]
    pace: {curve: even, slack: 10%}
`)
	for _, run := range []struct {
		job, script string
		code        int
	}{
		{"calm", "echo units=20 >&$QUOTA_REPORT_FD", 0},
		{"wild", "echo units=400 >&$QUOTA_REPORT_FD", 0}, // 420 of 350 at six o'clock
		{"small", "echo units=3 >&$QUOTA_REPORT_FD", 75},
		{"wild", "echo units=400 >&$QUOTA_REPORT_FD", 75},
	} {
		code, out := s.run("exec", "--label", "job="+run.job, "--units", "5", "--settle", "report",
			"--", "sh", "-c", run.script)
		if code != run.code {
			t.Fatalf("%s: exit code %d, not %d\n%s", run.job, code, run.code, out)
		}
	}
	code, out := s.run("explain")
	if code != 75 || !strings.Contains(out, "pace") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	_, table, _ := strings.Cut(out, "LABELS\n")
	if want := "  400  95 %  job=wild\n   20   5 %  job=calm\n"; table != want {
		t.Errorf("explained as\n%swant\n%s", out, want)
	}
}

// TestSettledBuckets: the price list determines which costs are known only after a call.
func TestSettledBuckets(t *testing.T) {
	t.Parallel()
	table, err := costs.Shipped().Upstream("anthropic")
	must(t, err)
	for bucket, want := range map[string]bool{"output/claude-x": true, "output": true,
		"requests/claude-x": false, "none": false} {
		if settled(table, bucket) != want {
			t.Errorf("%s: not %v", bucket, want)
		}
	}
	if settled(costs.Default(), "default") {
		t.Error("YouTube's prices are known")
	}
}

// TestDenialSaysWhatToType: a denial on a terminal contains a helpful command: resume for a
// suspended bucket, otherwise explain, which shows the spenders.
func TestDenialSaysWhatToType(t *testing.T) {
	day := quota.Limit{Bucket: "default", Units: 10, Window: quota.Window{Length: 1}}
	g := &gate{Budget: &quota.Budget{Limits: []quota.Limit{day}},
		cfg: &config.Config{Prices: costs.Shipped(), Costs: costs.Default()}}
	for limit, want := range map[string]string{
		day.Name(): "quotactl explain --bucket default --units 3 --manual " +
			"shows who spent the units",
		quota.Suspended: "if its quota is available again: quotactl resume --bucket default",
	} {
		d := quota.Decision{Limit: limit, Units: map[string]int64{"default": 3}}
		text := sentence(cli.Screen{Bars: true}, "", d, g.phrasing(t.Context(), true, d))
		if !strings.HasSuffix(text, "\nhint: "+want) || strings.Contains(text, "left") {
			t.Errorf("want the hint %q, and nothing that is left: %s", want, text)
		}
	}
}
