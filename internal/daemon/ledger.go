package daemon

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/quota"
)

// ClaimsLedger is a ledger with claims, by which processes share work.
type ClaimsLedger interface {
	quota.Ledger
	quota.Claims
}

// Count returns a ledger that counts and times the calls to l in m.
func Count(l ClaimsLedger, m *Metrics) ClaimsLedger { return &counted{l, m} }

// counted counts the ledger calls of the daemon's runs. Calls of the embedded ledger are not
// counted.
type counted struct {
	ClaimsLedger
	metrics *Metrics
}

// timed is deferred, with the time the call began.
func (c *counted) timed(operation string, asked time.Time, err *error) {
	c.metrics.ledgerTime.WithLabelValues(operation).Observe(time.Since(asked).Seconds())
	if fromLedger(*err) {
		c.metrics.ledgerFailures.WithLabelValues(operation).Inc()
	}
}

func (c *counted) Charge(ctx context.Context, charge quota.Charge) (d quota.Decision, err error) {
	defer c.timed("charge", time.Now(), &err)
	d, err = c.ClaimsLedger.Charge(ctx, charge)
	switch {
	case err != nil || d.Replayed:
	case d.Allowed:
		add(c.metrics.spent, charge)
		if d.Observed {
			c.metrics.observed.WithLabelValues(charge.Credential, d.Limit).Inc()
		}
	default:
		c.metrics.denials.WithLabelValues(charge.Credential, d.Limit).Inc()
	}
	return d, err
}

// Reserve is used by command jobs. What the job used is counted when it is settled.
func (c *counted) Reserve(ctx context.Context,
	r quota.Reserve) (d quota.Decision, err error) {
	defer c.timed("reserve", time.Now(), &err)
	d, err = c.ClaimsLedger.Reserve(ctx, r)
	if err == nil && !d.Replayed && !d.Allowed {
		c.metrics.denials.WithLabelValues(r.Credential, d.Limit).Inc()
	}
	return d, err
}

func (c *counted) Settle(ctx context.Context, s quota.Settle) (d quota.Decision, err error) {
	defer c.timed("settle", time.Now(), &err)
	if d, err = c.ClaimsLedger.Settle(ctx, s); err != nil || d.Replayed {
		return d, err
	}
	for bucket, units := range d.Units {
		c.metrics.spent.WithLabelValues(s.Credential, bucket, s.Labels[quota.LabelMethod],
			s.Labels[quota.LabelRegion]).Add(float64(units))
	}
	return d, err
}

func (c *counted) Cancel(ctx context.Context, charge quota.Charge, d quota.Decision) (err error) {
	defer c.timed("cancel", time.Now(), &err)
	if err = c.ClaimsLedger.Cancel(ctx, charge, d); err == nil {
		add(c.metrics.cancelled, charge)
	}
	return err
}

func add(vec *prometheus.CounterVec, charge quota.Charge) {
	for _, cost := range charge.Costs {
		vec.WithLabelValues(charge.Credential, cost.Bucket, charge.Labels[quota.LabelMethod],
			charge.Labels[quota.LabelRegion]).Add(float64(cost.Units))
	}
}

func (c *counted) Usage(ctx context.Context, credential string,
	limits []quota.Limit) (u quota.Usage, err error) {
	defer c.timed("usage", time.Now(), &err)
	return c.ClaimsLedger.Usage(ctx, credential, limits)
}

func (c *counted) Sums(ctx context.Context, q quota.SumQuery) (sums []quota.Sum, err error) {
	defer c.timed("sums", time.Now(), &err)
	return c.ClaimsLedger.Sums(ctx, q)
}

func (c *counted) Between(ctx context.Context, credential, bucket string,
	from, to time.Time) (units int64, err error) {
	defer c.timed("between", time.Now(), &err)
	return c.ClaimsLedger.Between(ctx, credential, bucket, from, to)
}

func (c *counted) Suspend(ctx context.Context, s quota.Suspension) (err error) {
	defer c.timed("suspend", time.Now(), &err)
	return c.ClaimsLedger.Suspend(ctx, s)
}

func (c *counted) Claim(ctx context.Context,
	claim quota.Claim) (state quota.ClaimState, err error) {
	defer c.timed("claim", time.Now(), &err)
	return c.ClaimsLedger.Claim(ctx, claim)
}

func (c *counted) Finish(ctx context.Context, claim quota.Claim, done bool) (err error) {
	defer c.timed("finish", time.Now(), &err)
	return c.ClaimsLedger.Finish(ctx, claim, done)
}
