package daemon_test

import (
	"testing"
	"time"
)

// TestForecast: that a day's schedule wants more than there is is logged once, as a warning. The
// shares make the units last, and the metrics say so.
func TestForecast(t *testing.T) {
	at(t, midnight.Add(10*time.Minute), 100, func(w *world) {
		p := w.open(lanes(t, "0 * * * *", "UTC", eight, 0)...) // 16 units an hour
		p.config.ForecastEvery = 10 * time.Minute
		p.start()
		time.Sleep(2 * time.Hour)
		if n := w.logged("level=WARN",
			"forecast: default lasts to the reset, but the schedule does not fit",
			"will miss"); n != 1 {
			t.Errorf("warned %d times, want once", n)
		}
		p.expectMetrics(`quota_forecast_dry_chance{bucket="default",credential="key1"} 0`,
			`quota_forecast_dry_timestamp_seconds{bucket="default",credential="key1"} +Inf`)
		p.end()
		p.close()
	})
}
