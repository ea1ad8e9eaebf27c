package report

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"quotabudget/internal/config"
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
	p.Reset = table.DayOf(buckets[0])
	for _, l := range cred.PerLabel {
		if slices.Contains(buckets, l.Bucket) {
			p.Unplayed = append(p.Unplayed, l.Name())
		}
	}
	return p, nil
}

// PlanQuery selects what a plan simulates.
type PlanQuery struct {
	Days  int
	Pages int64 // of each chart; 0 for the numbers of the catalogue
	// From returns the start of a plan on an empty ledger, by the reset of the first bucket. If it is
	// nil, the plan starts now, with the ledger's state.
	From func(reset quota.Window) (time.Time, error)
	// Choose returns the credential that is planned, and the configuration to plan it with. If it is
	// nil, the credential of the sweep or, without regions, that of the first job is planned.
	Choose func(*config.Config) (*config.Config, config.Credential, error)
}

// Plan simulates the configured schedule.
func (s Source) Plan(ctx context.Context, q PlanQuery) (out Planned, err error) {
	out.Days, out.Share = q.Days, math.Inf(1)
	if s, out.Assumed, err = s.Assumed(ctx); err != nil {
		return out, err
	}
	var cred config.Credential
	if q.Choose != nil {
		s.Config, cred, err = q.Choose(s.Config)
	} else {
		name := s.Config.Ingest.Credential
		if len(s.Config.Ingest.Regions) == 0 && len(s.Config.Jobs) > 0 {
			name = s.Config.Jobs[0].Credential
		}
		cred, err = s.Config.Credential(name)
	}
	if err != nil {
		return out, err
	}
	out.Costs = s.Config.Table(cred)
	lanes, err := s.Lanes(ctx, cred)
	if err != nil {
		return out, err
	}
	for i := range lanes {
		if lanes[i].Region != "" && q.Pages > 0 {
			lanes[i].Pages = q.Pages
		}
	}
	p, err := Scenario(s.Config, cred, lanes)
	switch {
	case err != nil:
	case q.From != nil:
		p.From, err = q.From(p.Reset)
	case s.Ledger == nil:
		p.From = time.Now().UTC()
	default:
		err = p.Recall(ctx, s.Ledger, cred.Name)
	}
	if err != nil {
		return out, err
	}
	p.To = p.From
	for range q.Days { // days of the upstream
		_, p.To = p.Reset.Bounds(p.To)
	}
	// At most 10,000 points of at least an hour, but finer ones for a plan of up to three days.
	p.Step = max(time.Hour, p.To.Sub(p.From)/10000).Truncate(time.Second)
	if p.To.Sub(p.From) <= 3*24*time.Hour {
		p.Step = 10 * time.Minute
	}
	p.Watch = func(r plan.Run) bool {
		if r.Lost() {
			out.Lose(r)
		}
		return ctx.Err() == nil
	}
	out.Report, out.Plan = p.Execute(), p
	return out, ctx.Err()
}
