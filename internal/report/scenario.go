package report

import (
	"context"
	"fmt"
	"math"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// Scenario returns a plan of the lanes under the limits of the credential, without a start or an
// end.
func Scenario(cfg *config.Config, cred config.Credential, lanes []share.Lane) (plan.Plan, error) {
	table := cfg.Table(cred)
	budget := cred.Budget(nil, table, nil)
	p := plan.Plan{Lanes: lanes, Limits: quota.Enforced(budget.Limits),
		Paces: quota.Enforced(budget.Paces)}
	if cred.Name == cfg.Ingest.Credential && len(cfg.Ingest.Regions) > 0 {
		price, err := cfg.Costs.Price(PageMethod)
		if err != nil {
			return p, err
		}
		p.Price = price
	}
	buckets := p.Buckets()
	if len(buckets) == 0 {
		return p, fmt.Errorf("nothing is scheduled that spends from credential %s", cred.Name)
	}
	p.Reset = table.Reset(buckets[0])
	return p, nil
}

// Until sets the end of a plan to that of its days-th upstream day.
func Until(p *plan.Plan, days int) {
	p.To = p.From
	for range days {
		_, p.To = p.Reset.Bounds(p.To)
	}
	p.Step = max(time.Hour, p.To.Sub(p.From)/10000).Truncate(time.Second)
	if p.To.Sub(p.From) <= 3*24*time.Hour {
		p.Step = 10 * time.Minute
	}
}

// Plan plays the configured schedule from now on, starting with the ledger's state.
func (s Source) Plan(ctx context.Context, days int) (out Planned, err error) {
	s, assumed, err := s.Assumed(ctx)
	if err != nil {
		return out, err
	}
	name := s.Config.Ingest.Credential
	if len(s.Config.Ingest.Regions) == 0 && len(s.Config.Jobs) > 0 {
		name = s.Config.Jobs[0].Credential
	}
	cred, err := s.Config.Credential(name)
	if err != nil {
		return out, err
	}
	lanes, err := s.Lanes(ctx, cred)
	if err != nil {
		return out, err
	}
	p, err := Scenario(s.Config, cred, lanes)
	if err != nil {
		return out, err
	}
	if p.From, p.Before, err = Standings(ctx, s.Ledger, cred.Name, p); err != nil {
		return out, err
	}
	Until(&p, days)
	out = Planned{Days: days, Share: math.Inf(1), Costs: s.Config.Costs,
		Assumed: assumed}
	p.Watch = func(r plan.Run) bool {
		if r.Lost() {
			out.Lose(r)
		}
		return ctx.Err() == nil
	}
	out.Report, out.Plan = p.Execute(), p
	return out, ctx.Err()
}

// Standings returns the ledger's time and the state of a credential that a plan needs.
func Standings(ctx context.Context, l *ledger.Ledger, credential string, p plan.Plan) (now time.Time,
	known []plan.Standing, err error) {
	usage, err := l.Usage(ctx, credential, p.Limits)
	if err != nil {
		return now, nil, err
	}
	longest := share.Memory
	for _, limit := range p.Limits {
		longest = max(longest, limit.Reach())
	}
	for _, bucket := range p.Buckets() {
		s := plan.Standing{Bucket: bucket}
		for _, b := range usage.Buckets {
			if b.Bucket == bucket {
				s.SuspendedUntil, s.ResetAt = b.SuspendedUntil, b.ResetAt
			}
		}
		q := quota.SpentQuery{Credential: credential, Bucket: bucket, Limits: p.Limits,
			Reset: s.ResetAt, Now: usage.At, Since: usage.At.Add(-longest)}
		if s.Spent, err = q.Read(ctx, l); err != nil {
			return now, nil, err
		}
		if s.Reservations, err = l.Reservations(ctx, credential, bucket); err != nil {
			return now, nil, err
		}
		known = append(known, s)
	}
	return usage.At, known, nil
}
