package upstream_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/ledger/sqliteledger"
	"quotabudget/internal/upstream"
)

// TestWhatClosesABucket: a bucket is closed by an answer that says so of it, and not by one that
// repeats the caller's words or speaks of another quota.
func TestWhatClosesABucket(t *testing.T) {
	const echo = `{"error":{"code":%d,"message":"Invalid value at 'region_code': \"units per day\"","errors":[{"reason":"invalidParameter"}]}}`
	unit := func(service, metric string) string {
		return fmt.Sprintf(`{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"googleapis.com",`+
			`"metadata":{"service":%q,"quota_unit":"1/d/{project}","quota_metric":%q}}]}}`, service,
			metric)
	}
	for _, c := range []struct {
		status       int
		body         string
		closed, told string
	}{
		{403, `{"error":{"errors":[{"reason":"quotaExceeded"}]}}`, "default", ""},
		{429, unit("youtube.googleapis.com", "youtube.googleapis.com/search_list"), "search_list",
			""},
		{429, unit("youtube.googleapis.com", "youtube.googleapis.com/comments"), "",
			"metric=youtube.googleapis.com/comments"},
		{429, unit("translate.googleapis.com", "translate.googleapis.com/default"), "", ""},
		{400, fmt.Sprintf(echo, 400), "", ""},
		{403, fmt.Sprintf(echo, 403), "", ""},
		{404, `units per day`, "", ""},
		{403, `units per day`, "", ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}))
		closed, told := asked(t, server.URL)
		server.Close()
		if closed != c.closed || !strings.Contains(told, c.told) ||
			(told == "") != (c.closed+c.told == "") {
			t.Errorf("%d %s: closed %q, told %s", c.status, c.body, closed, told)
		}
	}
}

// asked makes one request through a gate on a ledger of its own, and says which bucket it closed,
// and what was logged.
func asked(t *testing.T, endpoint string) (closed, told string) {
	t.Helper()
	ledger, err := sqliteledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	table := costs.Default()
	budget := config.Credential{Name: "key1", Limits: table.DefaultLimits()}.Budget(ledger, table, log)
	gate, err := upstream.Gate(endpoint, table, budget,
		func() (string, error) { return "key", nil }, log)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: gate, Timeout: time.Minute}
	resp, err := client.Get(endpoint + "/youtube/v3/videos?part=id&chart=mostPopular&regionCode=units%20per%20day")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	usage, err := budget.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range usage.Buckets {
		if !b.SuspendedUntil.IsZero() {
			closed += b.Bucket
		}
	}
	return closed, out.String()
}
