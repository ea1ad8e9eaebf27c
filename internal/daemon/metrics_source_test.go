package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/catalog"
	"quotabudget/internal/daemon"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// scrape returns the collectors' metrics in the text format, without comments.
func scrape(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "metrics.prom")
	must(t, prometheus.WriteToTextfile(file, registry))
	text, err := os.ReadFile(file)
	must(t, err)
	return string(text)
}

func want(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
}

// value returns the value of a series.
func value(t *testing.T, text, series string) float64 {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n"+series)
	line, _, _ := strings.Cut(rest, "\n")
	number, err := strconv.ParseFloat(line, 64)
	if !found || err != nil {
		t.Errorf("no %s in\n%s", series, text)
	}
	return number
}

// day holds the labels of a limit.
const day = `{bucket="default",credential="key1",timezone="America/Los_Angeles",window="day"} `

func budgetOn(t *testing.T, url string) *quota.Budget {
	t.Helper()
	l, err := ledger.Open(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	day, err := quota.ParseWindow("day", "America/Los_Angeles")
	must(t, err)
	return &quota.Budget{Ledger: l, Credential: "key1", Limits: []quota.Limit{
		{Bucket: "default", Units: 1000, Headroom: 100, Window: quota.Sliding(24 * time.Hour)},
		{Bucket: "default", Units: 500, Window: quota.Sliding(24 * time.Hour)},
		{Bucket: "default", Units: 1000, Window: day},
	}}
}

// TestLedgerThatHangs: a ledger that accepts a request and never responds removes its own metrics
// from a scrape, and no others. They return when the ledger does.
func TestLedgerThatHangs(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	budget := budgetOn(t, server.URL())
	kept, err := catalog.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "catalog.db"))
	must(t, err)
	defer kept.Close()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	registry := prometheus.NewRegistry()
	budgets := func() []*quota.Budget { return []*quota.Budget{budget} }
	registry.MustRegister(daemon.NewBudgetMetrics(budgets, logger),
		daemon.NewChartMetrics(func() (*catalog.Catalog, []string) { return kept, []string{"US"} },
			true, logger))
	up := []string{"quota_ledger_up 1", "ingest_catalog_up 1",
		`quota_limit_units{bucket="default",credential="key1",timezone="",window="24h"} 500`,
		`quota_remaining_units` + day + `1000`,
		`quota_suspended_until_timestamp_seconds{bucket="default",credential="key1"} 0`,
		`ingest_last_success_timestamp_seconds{region="US"} 0`,
		`ingest_chart_age_seconds{region="US"} +Inf`}
	want(t, scrape(t, registry), up...)

	must(t, syscall.Kill(server.PID(), syscall.SIGSTOP))
	for range 2 {
		text := scrape(t, registry)
		want(t, text, "quota_ledger_up 0", "ingest_catalog_up 1",
			`ingest_last_success_timestamp_seconds{region="US"} 0`)
		if strings.Contains(text, "quota_limit_units{") {
			t.Errorf("limits exported although the ledger does not respond:\n%s", text)
		}
	}
	must(t, syscall.Kill(server.PID(), syscall.SIGCONT))
	want(t, scrape(t, registry), up...)
	if n := strings.Count(log.String(), "source=ledger"); n != 2 {
		t.Errorf("the outage is logged in %d lines, want its beginning and its end:\n%s", n,
			log.String())
	}
	kept.Close()
	want(t, scrape(t, registry), "quota_ledger_up 1", "ingest_catalog_up 0")
}

// TestStandingOfABudget checks each gauge of a bucket with charges, a reservation and a suspension.
func TestStandingOfABudget(t *testing.T) {
	t.Parallel()
	budget := budgetOn(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
	registry := prometheus.NewRegistry()
	budgets := func() []*quota.Budget { return []*quota.Budget{budget} }
	registry.MustRegister(daemon.NewBudgetMetrics(budgets, slog.New(slog.DiscardHandler)))
	ctx := context.Background()
	if d, err := budget.Charge(ctx, quota.Call{Units: 30}); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	if _, err := budget.Reserve(ctx, quota.ReserveRequest{
		Call: quota.Call{Units: 5}, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	must(t, budget.Ledger.Suspend(ctx, quota.Suspension{Credential: "key1", Bucket: "default", Until: until}))
	_, reset := budget.Limits[2].Window.Bounds(time.Now())
	text := scrape(t, registry)
	want(t, text, "quota_used_units"+day+"30", "quota_held_units"+day+"5",
		"quota_remaining_units"+day+"965", "quota_headroom_units"+day+"0",
		`quota_suspended{bucket="default",credential="key1"} 1`)
	for name, at := range map[string]time.Time{
		"quota_reset_timestamp_seconds" + day:                                          reset,
		`quota_suspended_until_timestamp_seconds{bucket="default",credential="key1"} `: until,
	} {
		if line := value(t, text, name); line != float64(at.Unix()) {
			t.Errorf("%s%v, want %d", name, line, at.Unix())
		}
	}
}

// TestJournalOfABudget: the units that may be spent without the ledger, and the calls that wait to
// be booked, are exported while the ledger is away.
func TestJournalOfABudget(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	budget := budgetOn(t, server.URL())
	budget.Open, budget.Log = []string{"list"}, slog.New(slog.DiscardHandler)
	budget.Prices = map[string][]quota.Cost{"list": {{Bucket: "default", Units: 2}}}
	budget.AtMost = 9
	budget.Journal = &ledger.Journal{Path: filepath.Join(t.TempDir(), "journal.db"),
		Credential: "key1"}
	registry := prometheus.NewRegistry()
	budgets := func() []*quota.Budget { return []*quota.Budget{budget} }
	registry.MustRegister(daemon.NewBudgetMetrics(budgets, budget.Log))
	left := `quota_outage_remaining_units{bucket="default",credential="key1"} `
	for i, kill := range []bool{false, true} {
		if kill {
			server.Kill()
		}
		if d, err := budget.Charge(t.Context(), quota.Call{Method: "list"}); err != nil ||
			d.Unmetered != kill {
			t.Fatal(d, err)
		}
		want(t, scrape(t, registry), fmt.Sprint("quota_ledger_up ", 1-i),
			fmt.Sprint(left, 9-2*i), fmt.Sprint(`quota_journal_lines{credential="key1"} `, i))
	}
}

// TestUpstreamMeasured: an upstream can create only a few code labels, and a request without an
// answer counts too.
func TestUpstreamMeasured(t *testing.T) {
	t.Parallel()
	metrics := daemon.NewMetrics()
	status := 200
	broken := errors.New("connection reset")
	transport := metrics.Measure(answer(func() (*http.Response, error) {
		if status == 0 {
			return nil, broken
		}
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(""))}, nil
	}), func(*http.Request) (string, error) { return "youtube.videos.list", nil })
	for _, status = range []int{200, 200, 503, 777, 0} {
		resp, err := transport.RoundTrip(httptest.NewRequest("GET", "/", nil))
		if err == nil {
			resp.Body.Close()
		} else if err != broken {
			t.Error(err)
		}
	}
	count := func(code string) string {
		return `upstream_request_duration_seconds_count{code="` + code +
			`",method="youtube.videos.list"} `
	}
	want(t, scrape(t, metrics.Registry), count("200")+"2", count("503")+"1", count("other")+"1",
		count("none")+"1", count("429")+"0")
}

type answer func() (*http.Response, error)

func (a answer) RoundTrip(*http.Request) (*http.Response, error) { return a() }

// must fails the test on an error.

// TestMetricsFromTheBeginning: the series that a schedule implies exist before its first tick. The
// interval is the longest of the week, so that no region counts as stale every night.
func TestMetricsFromTheBeginning(t *testing.T) {
	at(t, noon, 10_000, func(w *env) {
		lanes := slices.Concat(lanes(t, "*/10 9-17 * * *", "America/Los_Angeles", "US", 0),
			lanes(t, "30 6 * * 1-5", "UTC", "GB DE", time.Minute),
			lanes(t, "@every 90s", "UTC", "FR", 0))
		p := w.open(lanes...).start()
		time.Sleep(time.Second)
		p.expectMetrics(
			`ingest_interval_seconds{region="US"} 54600`,  // from 17:50 to 09:00
			`ingest_interval_seconds{region="GB"} 259200`, // from Friday to Monday
			`ingest_interval_seconds{region="DE"} 259200`,
			`ingest_interval_seconds{region="FR"} 90`,
			`ingest_failures_total{kind="bad_credential",region="DE"} 0`,
			`ingest_failures_total{kind="ledger",region="US"} 0`,
			`ingest_last_success_timestamp_seconds{region="DE"} 0`,
			`quota_units_spent_total{bucket="default",credential="key1",`+
				`method="youtube.videos.list",region="US"} 0`,
			`quota_denials_total{credential="key1",limit="default day America/Los_Angeles"} 0`,
			`quota_denials_total{credential="key1",limit="suspended"} 0`,
			`ingest_reloads_total{result="refused"} 0`, `ingest_config_last_reload_successful 1`,
			`quota_ledger_failures_total{operation="charge"} 0`,
			`upstream_request_duration_seconds_count{code="none",method="youtube.videos.list"} 0`,
		)
		p.end()
	})
}
