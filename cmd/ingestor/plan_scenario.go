package main

import (
	"context"
	"errors"
	"os"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/share"
	"quotabudget/internal/sim"
	"quotabudget/internal/sqlite"
)

// scenario is the plan that the configuration and the flags mean.
func (a *app) scenario(ctx context.Context, cfg *config.Config, f planFlags) (plan.Plan, error) {
	cred, err := a.swept(cfg)
	if err != nil {
		return plan.Plan{}, err
	}
	lanes, err := a.planLanes(ctx, cfg, f.pages)
	if err != nil {
		return plan.Plan{}, err
	}
	p, err := report.Scenario(cfg, cred, lanes)
	if err != nil {
		return p, err
	}
	if f.from != "" {
		p.From, err = parseFrom(f.from, p.Reset)
	} else {
		p.From, p.Before, err = standings(ctx, cfg.Ledger, cred.Name, p)
	}
	if err != nil {
		return p, err
	}
	report.Until(&p, f.days)
	return p, nil
}

func parseFrom(text string, reset quota.Window) (time.Time, error) {
	if date, err := time.ParseInLocation("2006-01-02", text, reset.Zone); err == nil {
		start, _ := reset.Bounds(date.Add(12 * time.Hour))
		return start, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, cli.Usagef(
			"--from %s: neither a date such as 2026-11-01 nor a time such as 2026-11-01T07:00:00Z",
			text)
	}
	return t, nil
}

// planLanes are the lanes with the pages that their charts have: the given number, or what the
// catalogue says.
func (a *app) planLanes(ctx context.Context, cfg *config.Config,
	pages int) ([]share.Lane, error) {
	if pages == 0 {
		return report.Source{Config: cfg}.Lanes(ctx)
	}
	lanes, err := cfg.Lanes()
	for i := range lanes {
		lanes[i].Pages = int64(pages)
	}
	return lanes, err
}

// absentFile reports whether the URL names a SQLite file that is not there. Opening it would make
// it.
func absentFile(url string) bool {
	path, err := sqlite.ParseURL(url)
	if err != nil {
		return false
	}
	_, err = os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

// standings is the ledger's time, and what it holds that matters to the plan.
func standings(ctx context.Context, url, credential string, p plan.Plan) (now time.Time,
	known []sim.Standing, err error) {
	if absentFile(url) {
		return time.Now().UTC(), nil, nil
	}
	l, err := cli.OpenLedger(ctx, url)
	if err != nil {
		return now, nil, err
	}
	now, known, err = report.Standings(ctx, l, credential, p)
	return now, known, errors.Join(err, l.Close())
}
