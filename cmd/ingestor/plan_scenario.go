package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
	"quotabudget/internal/sim"
	"quotabudget/internal/sqlite"
)

// pageMethod is what a page of a chart is charged as.
const pageMethod = "youtube.videos.list"

// scenario is the plan that the configuration and the flags mean.
func (a *app) scenario(ctx context.Context, cfg *config.Config, f planFlags) (plan.Plan, error) {
	var p plan.Plan
	cred, err := a.swept(cfg)
	if err != nil {
		return p, err
	}
	if p.Price, err = cfg.Costs.Price(pageMethod); err != nil {
		return p, err
	}
	budget := cred.Budget(nil, cfg.Costs, a.Logger())
	p.Limits, p.Paces, p.Reset = budget.Limits, budget.Paces, resetOf(cfg, p.Price[0].Bucket)
	lanes, err := cfg.Lanes()
	if err != nil {
		return p, err
	}
	if p.Lanes, err = a.planLanes(ctx, cfg, lanes, f.pages); err != nil {
		return p, err
	}
	if f.from != "" {
		p.From, err = parseFrom(f.from, p.Reset)
	} else {
		p.From, p.Before, err = standings(ctx, cfg.Ledger, cred, p)
	}
	if err != nil {
		return p, err
	}
	p.To = p.From
	for range f.days {
		_, p.To = p.Reset.Bounds(p.To)
	}
	p.Step = max(time.Hour, p.To.Sub(p.From)/10000).Truncate(time.Second)
	if p.To.Sub(p.From) <= 3*24*time.Hour {
		p.Step = 10 * time.Minute
	}
	return p, nil
}

func resetOf(cfg *config.Config, bucket string) quota.Window {
	buckets := cfg.Costs.Buckets()
	for _, b := range buckets {
		if b.Name == bucket {
			return b.Reset
		}
	}
	return buckets[0].Reset
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
func (a *app) planLanes(ctx context.Context, cfg *config.Config, lanes []share.Lane,
	pages int) ([]share.Lane, error) {
	planned := slices.Clone(lanes)
	if pages > 0 {
		for i := range planned {
			planned[i].Pages = int64(pages)
		}
	}
	if pages > 0 || absentFile(cfg.Catalog) {
		return planned, nil
	}
	c, err := catalog.OpenReading(ctx, cfg.Catalog)
	if err != nil {
		return nil, err
	}
	for i := range planned {
		l := &planned[i]
		if l.Pages, err = c.PagesWanted(ctx, l.Region, l.Pages); err != nil {
			break
		}
	}
	return planned, errors.Join(err, c.Close())
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

func standings(ctx context.Context, url string, cred config.Credential, p plan.Plan) (now time.Time,
	known []sim.Standing, err error) {
	if absentFile(url) {
		return time.Now().UTC(), nil, nil
	}
	l, err := cli.OpenLedger(ctx, url)
	if err != nil {
		return now, nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	usage, err := l.Usage(ctx, cred.Name, p.Limits)
	if err != nil {
		return now, nil, err
	}
	longest := share.Memory
	for _, limit := range p.Limits {
		longest = max(longest, limit.Window.Longest())
	}
	for _, cost := range p.Price {
		s := sim.Standing{Bucket: cost.Bucket}
		for _, b := range usage.Buckets {
			if b.Bucket == cost.Bucket {
				s.SuspendedUntil = b.SuspendedUntil
			}
		}
		q := quota.SpentQuery{Credential: cred.Name, Bucket: cost.Bucket, Limits: p.Limits,
			Now: usage.At, Since: usage.At.Add(-longest)}
		if s.Spent, err = q.Read(ctx, l); err != nil {
			return now, nil, err
		}
		if s.Reservations, err = l.Reservations(ctx, cred.Name, cost.Bucket); err != nil {
			return now, nil, err
		}
		known = append(known, s)
	}
	return usage.At, known, nil
}
