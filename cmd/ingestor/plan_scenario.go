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
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/sqlite"
)

// play plays the plan that the configuration and the flags describe.
func (a *app) play(ctx context.Context, cfg *config.Config, f planFlags) (out report.Planned,
	err error) {
	src := report.Source{Config: cfg}
	q := report.PlanQuery{Days: f.days, Pages: int64(f.pages), Choose: a.planned}
	if f.from != "" {
		q.From = func(reset quota.Window) (time.Time, error) { return parseFrom(f.from, reset) }
	} else if !absentFile(cfg.Ledger) {
		if src.Ledger, err = cli.OpenLedger(ctx, cfg.Ledger); err != nil {
			return out, err
		}
		defer src.Ledger.Close()
	}
	return src.Plan(ctx, q)
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
