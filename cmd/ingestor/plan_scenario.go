package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/share"
	"quotabudget/internal/sqlite"
)

// scenario returns the plan of the configuration and the flags, and whether it assumes the default
// schedule.
func (a *app) scenario(ctx context.Context, cfg *config.Config, f planFlags) (p plan.Plan,
	assumed bool, err error) {
	src := report.Source{Config: cfg}
	if f.from == "" && !absentFile(cfg.Ledger) {
		if src.Ledger, err = cli.OpenLedger(ctx, cfg.Ledger); err != nil {
			return p, false, err
		}
		defer src.Ledger.Close()
	}
	if src, assumed, err = src.Assumed(ctx); err != nil {
		return p, assumed, err
	}
	var cred config.Credential
	if src.Config, cred, err = a.planned(src.Config); err != nil {
		return p, assumed, err
	}
	lanes, err := planLanes(ctx, src, cred, f.pages)
	if err != nil {
		return p, assumed, err
	}
	if p, err = report.Scenario(src.Config, cred, lanes); err != nil {
		return p, assumed, err
	}
	switch {
	case f.from != "":
		p.From, err = parseFrom(f.from, p.Reset)
	case src.Ledger == nil:
		p.From = time.Now().UTC()
	default:
		p.From, p.Before, err = report.Standings(ctx, src.Ledger, cred.Name, p)
	}
	if err != nil {
		return p, assumed, err
	}
	report.Until(&p, f.days)
	return p, assumed, nil
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

// planLanes returns the lanes with the given number of pages; 0 means the catalogue's numbers.
func planLanes(ctx context.Context, src report.Source, cred config.Credential,
	pages int) ([]share.Lane, error) {
	if pages == 0 {
		return src.Lanes(ctx, cred)
	}
	if src.Config.Ingest.Credential != cred.Name {
		return src.JobLanes(ctx, cred)
	}
	lanes, err := src.Config.Lanes()
	if err != nil {
		return nil, err
	}
	for i := range lanes {
		lanes[i].Pages = int64(pages)
	}
	jobs, err := src.JobLanes(ctx, cred)
	return append(lanes, jobs...), err
}

// planned returns the credential to plan: the chosen one, otherwise the sweep's, otherwise the
// first job's. If no credential is named, the sweep may be tried with any that has no jobs.
func (a *app) planned(cfg *config.Config) (*config.Config, config.Credential, error) {
	spends := func(j config.OwnJob) bool { return j.Credential == a.Credential }
	own := *cfg
	switch {
	case len(cfg.Ingest.Regions) == 0 && len(cfg.Jobs) > 0:
		cred, err := cfg.Credential(cmp.Or(a.Credential, cfg.Jobs[0].Credential))
		own.Ingest.Credential = ""
		return &own, cred, err
	case a.Credential != cfg.Ingest.Credential && slices.ContainsFunc(cfg.Jobs, spends):
		cred, err := cfg.Credential(a.Credential)
		return &own, cred, err
	}
	cred, err := a.swept(cfg)
	own.Ingest.Credential = cred.Name
	return &own, cred, err
}

// absentFile reports whether the URL names a missing SQLite file. Opening it would create the file.
func absentFile(url string) bool {
	path, err := sqlite.ParseURL(url)
	if err != nil {
		return false
	}
	_, err = os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}
