package daemon_test

import (
	"context"
	"testing"
	"time"

	"quotabudget/internal/job"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
)

// TestForecast: a schedule that needs more units than a day has is logged once, as a warning. With
// shares the units last, as the metrics show.
func TestForecast(t *testing.T) {
	at(t, midnight.Add(10*time.Minute), 100, func(w *env) {
		p := w.open(lanes(t, "0 * * * *", "UTC", eight, 0)...) // 16 units an hour
		p.config.ForecastEvery = 10 * time.Minute
		p.start()
		time.Sleep(2 * time.Hour)
		w.expectLogged(1, "level=WARN",
			"forecast: default lasts to the reset, but the schedule does not fit", "will miss")
		p.expectMetrics(`quota_forecast_dry_earliest_timestamp_seconds{bucket="default",credential="key1"} +Inf`,
			`quota_forecast_dry_timestamp_seconds{bucket="default",credential="key1"} +Inf`)
	})
}

// TestForecast_OwnPace: the pace of a job delays only that job. The forecast includes jobs that
// cron runs.
func TestForecast_OwnPace(t *testing.T) {
	at(t, midnight.Add(10*time.Minute), 1000, func(w *env) {
		p := w.open()
		p.job("slow", "0 * * * *", 5, "")
		p.pace(&p.config.Lanes[0], &quota.Pace{Curve: append(make([]int64, 23), 1)})
		p.job("calm", "5 * * * *", 2, "")
		p.config.ForecastEvery = 10 * time.Minute
		p.config.Describe = func(_ context.Context, q *plan.Question) error {
			if q.Credential != "key1" {
				t.Errorf("asked for %s", q.Credential)
			}
			cron := p.jobOf("cron", "30 * * * *", 2000, "").Lane
			cron.External = true
			q.Lanes = append(q.Lanes, cron)
			return nil
		}
		p.start()
		time.Sleep(time.Minute)
		w.expectLogged(1, "forecast: default runs dry at 07:30Z",
			"Z: cron will miss 24 runs from 07:30Z on; "+
				"slow will miss 23 runs from 08:00Z on, held back by the pace\"")
	})
}

// TestForecast_Learns: the forecast of a job uses its hold until it has run, and then what its
// runs used.
func TestForecast_Learns(t *testing.T) {
	at(t, midnight.Add(10*time.Minute), 1000, func(w *env) {
		w.limits = []quota.Limit{{Bucket: quota.DefaultBucket, Units: 350,
			Window: quota.Sliding(5 * time.Hour)}} // too short to be shared
		p := w.open()
		careful := p.job("careful", "5 * * * *", 100, `echo units=2 >&$QUOTA_REPORT_FD`)
		careful.Job.Settle = job.SettleReport
		p.config.ForecastEvery = 10 * time.Minute
		p.start()
		time.Sleep(12 * time.Hour)
		w.expectLogged(1, "level=WARN", "forecast: default runs dry at", "careful will miss")
		w.expectLogged(1, "level=INFO", "forecast: default lasts to", "was=runs_dry")
	})
}

// TestForecast_Parts: each part of a split bucket has a forecast: the limit applies to each.
func TestForecast_Parts(t *testing.T) {
	at(t, midnight.Add(10*time.Minute), 100, func(w *env) {
		p := w.open()
		p.sweep.Budget.Split = []string{quota.DefaultBucket}
		p.job("idle", "0 0 1 1 *", 1, "")
		p.config.ForecastEvery = 10 * time.Minute
		_, err := p.sweep.Budget.Charge(w.Context(), quota.Call{Bucket: "default/m", Units: 100})
		must(t, err)
		p.start()
		time.Sleep(time.Minute)
		w.expectLogged(1, "level=WARN", "forecast: default/m is exhausted")
	})
}
