package daemon

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/forecast"
	"quotabudget/internal/quota"
)

// outlook is the metrics of the forecast.
type outlook struct {
	dry    *prometheus.GaugeVec
	chance *prometheus.GaugeVec
}

func newOutlook() outlook {
	labels := []string{"credential", "bucket"}
	return outlook{
		dry: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "quota_forecast_dry_timestamp_seconds",
			Help: "When the bucket is foretold to run dry, as Unix time; +Inf when it lasts to its reset."}, labels),
		chance: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "quota_forecast_dry_chance",
			Help: "How likely the bucket runs dry before its reset, from 0 to 1."}, labels),
	}
}

// foretell asks every w.Foretell when each bucket will run dry, and warns when the answer is
// another than before.
func (d *Daemon) foretell(ctx context.Context, w *Work) {
	if w.Foretell <= 0 {
		return
	}
	d.Metrics.outlook.dry.Reset() // a bucket may be gone
	d.Metrics.outlook.chance.Reset()
	for timer := time.NewTimer(0); ; timer.Reset(w.Foretell) {
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		told, err := w.ask(ctx)
		if err != nil {
			if ctx.Err() == nil {
				d.Log.Warn("nothing can be foretold", "error", err)
			}
			continue
		}
		for _, f := range told {
			d.judge(w.Sweep.Budget.Credential, f)
		}
	}
}

// judge sets the metrics of one bucket, and logs a verdict that has changed: as a warning when the
// bucket is short.
func (d *Daemon) judge(credential string, f forecast.Forecast) {
	dry := math.Inf(1) // later than any moment: what compares, takes the least or asks how long needs no exception for it
	if !f.DryAt.IsZero() {
		dry = float64(f.DryAt.Unix())
	}
	d.Metrics.outlook.dry.WithLabelValues(credential, f.Bucket).Set(dry)
	d.Metrics.outlook.chance.WithLabelValues(credential, f.Bucket).Set(f.Chance)
	was, changed := d.watch.Changed(f)
	attrs := []any{"bucket", f.Bucket}
	if was != "" { // not the first
		attrs = append(attrs, "was", was)
	}
	switch {
	case changed && f.Short():
		d.Log.Warn("forecast: "+f.Text(), attrs...)
	case changed && was.Short():
		d.Log.Info("forecast: "+f.Text(), attrs...)
	}
}

// ask computes the forecast of the credential's buckets under the lanes.
func (w *Work) ask(ctx context.Context) ([]forecast.Forecast, error) {
	b := w.Sweep.Budget
	q := forecast.Question{
		Credential: b.Credential, Limits: b.Limits, Paces: b.Paces, Resets: make(map[string]quota.Window),
		Price: b.Prices[chartMethod],
	}
	for _, bucket := range b.Buckets() {
		q.Resets[bucket] = w.Sweep.Day
	}
	for _, l := range w.Lanes {
		var err error
		if l.Pages, err = w.Sweep.Catalog.PagesWanted(ctx, l.Region, l.Pages); err != nil {
			return nil, err
		}
		q.Lanes = append(q.Lanes, l)
	}
	return q.Ask(ctx, b.Ledger)
}
