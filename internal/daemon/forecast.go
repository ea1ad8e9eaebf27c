package daemon

import (
	"context"
	"math"
	"time"

	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
)

// forecast periodically computes when each bucket will run dry, and logs changes.
func (d *Daemon) forecast(ctx context.Context) {
	c := d.inForce.Load()
	for wait := time.Duration(0); c.ForecastEvery > 0 && quota.Pause(ctx, wait); wait = c.ForecastEvery {
		if now := d.inForce.Load(); now != c {
			c = now
			d.Metrics.dryAt.Reset() // a bucket may have been removed
			d.Metrics.dryEarliest.Reset()
		}
		for _, p := range c.policies() {
			credential := p.Budget.Credential
			forecasts, err := c.forecasts(ctx, p)
			if err != nil && ctx.Err() == nil {
				d.Log.Warn("cannot compute the forecast", "credential", credential, "error", err)
			}
			for _, f := range forecasts {
				d.report(credential, f)
			}
		}
	}
}

// report sets the metrics of one bucket. It logs a changed verdict, as a warning if the bucket is
// short.
func (d *Daemon) report(credential string, f plan.Forecast) {
	d.Metrics.dryAt.WithLabelValues(credential, f.Bucket).Set(unixOrNever(f.DryAt))
	d.Metrics.dryEarliest.WithLabelValues(credential, f.Bucket).Set(unixOrNever(f.Earliest))
	if d.verdicts[credential] == nil {
		d.verdicts[credential] = new(plan.VerdictWatch)
	}
	was, changed := d.verdicts[credential].Changed(f)
	attrs := []any{"bucket", f.Bucket}
	if was != "" { // not the first verdict
		attrs = append(attrs, "was", was)
	}
	switch {
	case changed && f.Short():
		d.Log.Warn("forecast: "+f.Text(), attrs...)
	case changed && was.Short():
		d.Log.Info("forecast: "+f.Text(), attrs...)
	}
}

// unixOrNever returns +Inf for the zero time, so that comparisons and minima need no special case.
func unixOrNever(at time.Time) float64 {
	if at.IsZero() {
		return math.Inf(1)
	}
	return float64(at.Unix())
}

func (c *Config) forecasts(ctx context.Context, p Policy) ([]plan.Forecast, error) {
	b := p.Budget
	limits, _, err := b.Listed(ctx)
	if err != nil {
		return nil, err
	}
	q := plan.Question{
		Credential: b.Credential, Limits: quota.Enforced(limits),
		Resets: make(map[string]quota.Window), Price: b.Prices[chartMethod],
	}
	for _, l := range c.sharing(b.Credential) {
		if l.OwnPaces == nil { // the credential's paces apply
			q.Paces = quota.Enforced(l.Work.policy().Budget.Paces)
			break
		}
	}
	for _, l := range q.Limits {
		q.Resets[l.Bucket] = p.Day
	}
	if q.Lanes, err = c.costedLanes(ctx, b.Credential, ""); err != nil {
		return nil, err
	}
	if c.Describe != nil {
		if err := c.Describe(ctx, &q); err != nil {
			return nil, err
		}
	}
	return q.Ask(ctx, c.Spending)
}
