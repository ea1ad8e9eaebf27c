package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/serve"
	"quotabudget/internal/sqlite"
)

const maxPlanDays = 3660

type planFlags struct {
	from     string
	days     int
	suggest  bool
	failOver string
	svg      string
	try      config.Overrides
	pages    int
}

func planCommand(a *app) *cobra.Command {
	f := planFlags{days: 7}
	c := a.Command("plan", func(c *cobra.Command, _ []string) error {
		if err := nothingEmpty(c.LocalNonPersistentFlags()); err != nil {
			return err
		}
		return a.plan(c.Context(), f)
	})
	flags := c.Flags()
	cli.Flags(flags, "from", &f.from, "days", &f.days, "suggest", &f.suggest,
		"fail-over", &f.failOver, "svg", &f.svg, "schedule", &f.try.Schedule,
		"timezone", &f.try.Timezone, "stagger", &f.try.Stagger)
	flags.StringSliceVar(&f.try.Regions, "regions", nil, "")
	cli.Flags(flags, "pages", &f.pages)
	cli.Limit(flags, 1, maxPlanDays, "days")
	cli.Limit(flags, 1, maxPages, "pages")
	return c
}

// nothingEmpty refuses flags with an empty value, such as that of an unset variable, because the
// default is not intended.
func nothingEmpty(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if text := f.Value.String(); f.Changed && (text == "" || text == "[]") {
			err = cli.Usagef("--%s is given, but empty: give it a value, or leave it out", f.Name)
		}
	})
	return err
}

func (a *app) plan(ctx context.Context, f planFlags) error {
	share, err := f.share()
	if err != nil {
		return err
	}
	cfg, err := a.Load(ctx)
	if err != nil {
		return err
	}
	if err := f.try.Apply(cfg); err != nil {
		return cli.Usagef("--%w", err)
	}
	out := planned{flags: f, chartless: f.pages == 0 && absentFile(cfg.Catalog)}
	out.Planned, err = a.play(ctx, cfg, f)
	out.Share = share
	if err == nil && f.suggest {
		wish := plan.Wish{Zone: cfg.Ingest.Timezone, Share: share}
		suggestion, ok := out.Plan.Suggest(ctx, wish)
		if !ok && len(out.Plan.Before) > 0 { // none fits from now on, but one may from the reset on
			suggestion, ok = out.Plan.AfterReset().Suggest(ctx, wish)
		}
		if ok {
			out.Suggestion = &suggestion
		}
	}
	if ctx.Err() != nil {
		return errors.New("interrupted before the plan was complete")
	}
	if err != nil {
		return err
	}
	if f.svg != "" {
		if err := drawSVG(f.svg, &out); err != nil {
			return err
		}
	}
	err = a.Print(report.NewPlan(out.Planned), func(s cli.Screen) { drawPlan(s, &out) })
	if err != nil {
		return err
	}
	if !out.Report.Fits() || len(out.Report.Over(out.Share)) > 0 {
		return &cli.Coded{Code: cli.ExitExhausted}
	}
	return nil
}

type planned struct {
	report.Planned
	flags     planFlags
	chartless bool // no catalogue yet to count a chart's pages
}

// share parses --fail-over, and returns the share of each limit that peaks may reach: unbounded
// without it. Manual charges may exceed the share of scheduled ones without costing any run its
// pages.
func (f planFlags) share() (float64, error) {
	if f.failOver == "" {
		return math.Inf(1), nil
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(f.failOver, "%"), 64)
	if err != nil || math.IsNaN(percent) || percent <= 0 || percent > 100 {
		return 0, cli.Usagef("--fail-over %s: must be above 0%% and at most 100%%", f.failOver)
	}
	return report.PartOf(percent), nil
}

func drawSVG(path string, o *planned) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := serve.DrawPlan(file, o.Planned); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return file.Close()
}

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
	t, err := time.Parse(time.RFC3339, text)
	if date, dateErr := time.ParseInLocation("2006-01-02", text, reset.Zone); dateErr == nil {
		t, _ = reset.Bounds(date.Add(12 * time.Hour))
		err = nil
	}
	switch {
	case err != nil:
		return t, cli.Usagef(
			"--from %s: neither a date such as 2026-11-01 nor a time such as 2026-11-01T07:00:00Z",
			text)
	case t.Year() < 1971 || t.Year() > 9900: // years that the ledger and RFC 3339 allow
		return t, cli.Usagef("--from %s: must be in the years 1971 to 9900", text)
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
