package daemon

import (
	"context"
	"math"
	"slices"
	"time"

	"quotabudget/internal/forecast"
	"quotabudget/internal/quota"
)

// forecast computes every so often when each bucket will run dry, and warns when the answer has
// changed.
func (d *Daemon) forecast(ctx context.Context) {
	c := d.inForce.Load()
	for wait := time.Duration(0); c.ForecastEvery > 0 && pause(ctx, wait); wait = c.ForecastEvery {
		if now := d.inForce.Load(); now != c {
			c = now
			d.Metrics.dryAt.Reset() // a bucket may be gone
			d.Metrics.dryChance.Reset()
		}
		forecasts, err := c.forecasts(ctx)
		if err != nil && ctx.Err() == nil {
			d.Log.Warn("cannot compute the forecast", "error", err)
		}
		for _, f := range forecasts {
			d.report(c.Sweep.Budget.Credential, f)
		}
	}
}

// report sets the metrics of one bucket, and logs a verdict that has changed: as a warning when the
// bucket is short.
func (d *Daemon) report(credential string, f forecast.Forecast) {
	dry := math.Inf(1) // whatever compares or takes the least needs no exception for it
	if !f.DryAt.IsZero() {
		dry = float64(f.DryAt.Unix())
	}
	d.Metrics.dryAt.WithLabelValues(credential, f.Bucket).Set(dry)
	d.Metrics.dryChance.WithLabelValues(credential, f.Bucket).Set(f.Chance)
	was, changed := d.verdicts.Changed(f)
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

func (c *Config) forecasts(ctx context.Context) ([]forecast.Forecast, error) {
	b := c.Sweep.Budget
	q := forecast.Question{
		Credential: b.Credential, Limits: b.Limits, Paces: b.Paces,
		Resets: make(map[string]quota.Window), Price: b.Prices[chartMethod],
		Lanes: slices.Clone(c.Lanes),
	}
	for _, bucket := range b.Buckets() {
		q.Resets[bucket] = c.Sweep.Day
	}
	if err := c.setPages(ctx, q.Lanes); err != nil {
		return nil, err
	}
	return q.Ask(ctx, b.Ledger)
}
