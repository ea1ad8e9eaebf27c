package daemon_test

import (
	"regexp"
	"testing"
	"time"
)

// TestForetold: a day whose schedule wants more than there is is told of once, as a warning and a metric, before it runs dry.
func TestForetold(t *testing.T) {
	t.Parallel()
	at(t, midnight.Add(10*time.Minute), 100, func(w *world) {
		p := w.open(lanes(t, "0 * * * *", "UTC", eight, 0)...) // 16 units an hour
		p.work.Foretell = 10 * time.Minute
		p.start()
		time.Sleep(2 * time.Hour)
		if n := w.told("level=WARN", "forecast: default runs dry", "before the reset"); n != 1 {
			t.Errorf("warned %d times, want once", n)
		}
		_, metrics := p.scrape("/metrics")
		for _, want := range []string{`quota_forecast_dry_chance{bucket="default",credential="key1"} 1\n`,
			`quota_forecast_dry_timestamp_seconds{bucket="default",credential="key1"} 1\.78\d+e\+09\n`} {
			if !regexp.MustCompile(want).MatchString(metrics) {
				t.Errorf("metrics are without %s", want)
			}
		}
		p.end()
		p.close()
	})
}
