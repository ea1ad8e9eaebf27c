package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/daemon"
	"quotabudget/internal/ingest"
	"quotabudget/internal/ledger"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/youtube"
)

// deps is what a sweep or a daemon needs, wired together. Without sweeps, there is no credential,
// budget or client.
type deps struct {
	cfg     *config.Config
	ledger  *ledger.Ledger
	cred    config.Credential
	budget  *quota.Budget
	catalog *catalog.Catalog
	client  *youtube.Client
	metrics *daemon.Metrics // nil if nothing reads them
	log     *slog.Logger
}

// open wires deps. It requires the key: the upstream would refuse a sweep without one. Without
// metrics, it opens even an unreachable ledger (see cli.OpenLedger). With metrics, the ledger is
// shared by daemons, and its calls are counted.
func (a *app) open(ctx context.Context, cfg *config.Config, log *slog.Logger,
	metrics *daemon.Metrics) (*deps, error) {
	s := &deps{cfg: cfg, metrics: metrics, log: log}
	var err error
	if s.sweeps() {
		if s.cred, err = a.chosen(cfg); err != nil {
			return nil, err
		}
		s.cred.APIKey.WarnExposed(log)
	}
	if metrics == nil {
		s.ledger, err = cli.OpenLedger(ctx, cfg.Ledger)
	} else if s.ledger, err = ledger.Open(ctx, cfg.Ledger); err == nil {
		s.ledger.Observe = metrics.Observe
	}
	if err != nil {
		return nil, err
	}
	if s.catalog, err = catalog.Open(ctx, cfg.Catalog); err != nil {
		return nil, errors.Join(err, s.ledger.Close())
	}
	if err := s.wire(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *deps) sweeps() bool { return len(s.cfg.Ingest.Regions) > 0 }

// wire makes the budget and the client of a sweep.
func (s *deps) wire(ctx context.Context) error {
	if !s.sweeps() {
		return nil
	}
	s.budget = report.Journaled(s.cred.Budget(s.ledger, s.cfg.Table(s.cred), s.log), s.cfg, s.cred)
	gate, err := meter.New(s.cfg.YouTube.Endpoint, s.cfg.Costs, s.budget, s.cred.APIKey.Key, s.log)
	if err != nil {
		return err
	}
	if s.metrics != nil {
		gate.Base = s.metrics.Measure(gate.Base, gate.Table.Method)
	}
	if s.client, err = youtube.New(ctx, s.cfg.YouTube.Endpoint, gate); err != nil {
		return err
	}
	s.client.Retry.Tell = func(err error, wait time.Duration) {
		s.log.Warn("request failed, retrying", "error", err, "wait", wait.Round(time.Millisecond))
	}
	return nil
}

// swept returns the credential that sweeps spend from. It must have a limit on each bucket that a
// page takes units from. Its key may be missing.
func (a *app) swept(cfg *config.Config) (config.Credential, error) {
	cred, err := cfg.Credential(cmp.Or(a.Credential, cfg.Ingest.Credential))
	if err != nil {
		return cred, cli.Hint(cli.Usagef("%w", err),
			"choose one with --credential, or with credential: under ingest:")
	}
	price, err := cfg.Costs.Price(report.PageMethod)
	if err != nil {
		return cred, err
	}
	for _, cost := range price {
		limits := func(l quota.Limit) bool { return l.Bucket == cost.Bucket }
		if !slices.ContainsFunc(cred.Limits, limits) {
			return cred, cli.Misconfigured(
				fmt.Errorf("credential %s has no limit on bucket %s, which %s takes units from",
					cred.Name, cost.Bucket, report.PageMethod),
				"limits: replaces all the defaults: add one for %s", cost.Bucket)
		}
	}
	return cred, nil
}

func (a *app) chosen(cfg *config.Config) (config.Credential, error) {
	cred, err := a.swept(cfg)
	if err != nil {
		return cred, err
	}
	if _, err := cred.APIKey.Key(); err != nil {
		advice := cred.APIKey.Advice()
		if cfg.File == "" { // nothing is set up yet
			advice += "; ingestor once --demo needs no key"
		}
		return cred, cli.Misconfigured(err, "%s", advice)
	}
	return cred, nil
}

// Close closes the ledger and the catalogue.
func (s *deps) Close() error { return errors.Join(s.catalog.Close(), s.ledger.Close()) }

func (s *deps) sweep() *ingest.Sweep {
	return &ingest.Sweep{
		Client: s.client, Catalog: s.catalog, Budget: s.budget,
		Regions: s.cfg.Ingest.Regions, Pages: s.cfg.Ingest.Pages, Parallel: s.cfg.Ingest.Parallel,
		Day: s.cfg.Costs.DayOf(s.cfg.Costs.Buckets()[0].Name), Job: config.DefaultJob,
		Run: quota.NewRunID(time.Now()), Now: time.Now, Log: s.log,
	}
}

func regionNames(cfg *config.Config) []string {
	return report.Source{Config: cfg}.Regions()
}
