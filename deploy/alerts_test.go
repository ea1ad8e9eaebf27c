package deploy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/standin"
)

const (
	rulesFile     = "prometheus/quotabudget.rules.yml"
	dashboardFile = "grafana/quotabudget.json"
)

// TestRules requires that Prometheus accepts the alerts, that they pass their tests, and that a
// test sees each one fire.
func TestRules(t *testing.T) {
	t.Parallel()
	tests := "prometheus/quotabudget.rules.test.yml"
	tool(t, "promtool", "check", "rules", rulesFile)
	tool(t, "promtool", "test", "rules", tests)
	for _, r := range rules(t) {
		fires := regexp.MustCompile(`alertname: ` + r.Alert + `\n[^-]*exp_alerts:`)
		if r.Alert != "" && !fires.MatchString(read(t, tests)) {
			t.Errorf("no test sees %s fire", r.Alert)
		}
	}
}

type rule struct{ Record, Alert, Expr string }

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	must(t, yaml.Unmarshal([]byte(read(t, rulesFile)), &file))
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// TestQueriesNameRealMetrics requires that every query of the dashboard and of the alerts is
// PromQL, and that a daemon or a sweep from cron exports every metric that it names from the start,
// because an alert on a missing series never fires.
func TestQueriesNameRealMetrics(t *testing.T) {
	t.Parallel()
	queries := dashboardQueries(t)
	known := map[string]bool{"up": true} // made by Prometheus
	for _, r := range rules(t) {
		queries = append(queries, r.Expr)
		known[r.Record] = true
	}
	checkQueries(t, queries)
	for _, text := range []string{scrapeDaemon(t), scrapeFile(t)} {
		for _, sample := range regexp.MustCompile(`(?m)^[a-zA-Z_:][\w:]*`).FindAllString(text, -1) {
			known[sample] = true
		}
	}
	for _, query := range queries {
		for _, name := range metricsOf(query) {
			if !known[name] {
				t.Errorf("no metric %s, in %s", name, query)
			}
		}
	}
	if len(queries) < 40 {
		t.Errorf("only %d queries were found", len(queries))
	}
}

// dashboardQueries returns the expressions of the panels and variables, with Grafana's variables
// replaced.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	var dashboard any
	must(t, json.Unmarshal([]byte(read(t, dashboardFile)), &dashboard))
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			for key, value := range node {
				text, _ := value.(string)
				if key == "expr" {
					queries = append(queries, variables.Replace(text))
				} else if labels := labelValues.FindStringSubmatch(text); labels != nil {
					queries = append(queries, labels[1])
				}
				walk(value)
			}
		case []any:
			for _, value := range node {
				walk(value)
			}
		}
	}
	walk(dashboard)
	return queries
}

var (
	variables   = strings.NewReplacer("$__rate_interval", "5m", "$credential", "key1")
	labelValues = regexp.MustCompile(`^label_values\((.*),.*\)$`)
)

// checkQueries requires that Prometheus can parse the queries.
func checkQueries(t *testing.T, queries []string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("groups: [{name: queries, rules: [")
	for i, query := range slices.Compact(slices.Sorted(slices.Values(queries))) {
		fmt.Fprintf(&text, "{record: 'query:%d', expr: %q},\n", i, query)
	}
	file := filepath.Join(t.TempDir(), "queries.yml")
	write(t, file, text.String()+"]}]\n")
	tool(t, "promtool", "check", "rules", file)
}

var (
	notMetrics = regexp.MustCompile(
		`"[^"]*"|\{[^}]*\}|\[[^\]]*\]|(\w+\s+)?\b(by|without)\s*\([^)]*\)|` +
			`\b(on|ignoring|group_left|group_right)\s*\([^)]*\)|\b\w+\s*\(`)
	identifier = regexp.MustCompile(`[a-zA-Z_:][\w:]*`)
	keywords   = []string{"and", "or", "unless", "bool", "offset", "by", "on", "Inf", "NaN"}
)

// metricsOf returns the names in an expression that are neither functions, labels nor keywords.
func metricsOf(query string) []string {
	names := identifier.FindAllString(notMetrics.ReplaceAllString(query, " "), -1)
	keyword := func(name string) bool { return slices.Contains(keywords, name) }
	return slices.DeleteFunc(names, keyword)
}

// scrapeDaemon returns the metrics of a daemon after its first forecast.
func scrapeDaemon(t *testing.T) (text string) {
	t.Helper()
	log := launch(t, withAtMost+"ingest: {regions: [US], listen: \"127.0.0.1:0\"}\n"+
		"jobs: [{name: one, command: [\"true\"], schedule: \"@every 1s\", "+
		"cost: {bucket: default, units: 1}}]\n", "ingestor", "run")
	await(t, log, func() bool {
		if at := served.FindStringSubmatch(log.String()); at != nil {
			text = get("http://" + at[1] + "/metrics")
		}
		return strings.Contains(text, "quota_forecast_dry_timestamp_seconds{") &&
			strings.Contains(text, "quota_forecast_dry_earliest_timestamp_seconds{") &&
			strings.Contains(text, "quota_outage_remaining_units{") &&
			strings.Contains(text, "ingest_interval_seconds{") &&
			strings.Contains(text, "ingest_job_last_success_timestamp_seconds{")
	})
	return text
}

// withAtMost is a configuration that lets this host spend some units without the ledger.
const withAtMost = `credentials:
  - name: default
    api_key: {env: YOUTUBE_API_KEY}
    when_unreachable: {open: [youtube.videos.list], at_most: 5}
`

// launch starts a program in a new folder, in front of the stand-in, and returns its log.
func launch(t *testing.T, config, name string, args ...string) *metertest.Log {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, name), args...)
	cmd.Dir = t.TempDir()
	write(t, filepath.Join(cmd.Dir, "quota.yaml"), config)
	cmd.Env = environment(cmd.Dir, serve(t, &standin.YouTube{}))
	log := new(metertest.Log)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return log
}

// await waits until a condition on the program that prints the log holds.
func await(t *testing.T, log *metertest.Log, holds func() bool) {
	t.Helper()
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("it does not get that far: %s", log)
}

func environment(home, upstream string) []string {
	return []string{"HOME=" + home, "YOUTUBE_API_KEY=any", "YOUTUBE_ENDPOINT=" + upstream,
		"PATH=/usr/bin:/bin"}
}

var served = regexp.MustCompile(`are served" address=(\S+)`)

// scrapeFile returns the metrics file of a sweep from cron that failed in a region.
func scrapeFile(t *testing.T) string {
	t.Helper()
	return sweepFile(t, serve(t, http.NotFoundHandler()), false)
}

// sweepFile returns the metrics file of a sweep.
func sweepFile(t *testing.T, upstream string, succeeds bool) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ingestor.prom")
	cmd := exec.CommandContext(t.Context(), program(t, "ingestor"), "once", "--region", "US",
		"--metrics-file", file)
	cmd.Dir = t.TempDir()
	write(t, filepath.Join(cmd.Dir, "quota.yaml"), withAtMost)
	cmd.Env = environment(cmd.Dir, upstream)
	if out, err := cmd.CombinedOutput(); (err == nil) != succeeds {
		t.Errorf("the sweep ends with %v: %s", err, out)
	}
	return read(t, file)
}

func serve(t *testing.T, handler http.Handler) string {
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL + "/"
}

func get(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}
