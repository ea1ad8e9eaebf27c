package daemon_test

import (
	"slices"
	"testing"
	"time"
)

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
