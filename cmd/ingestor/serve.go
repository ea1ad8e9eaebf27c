package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
)

func serveCommand(a *app) *cobra.Command {
	var address string
	var demo bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the catalogue and the budgets as web pages and as an HTTP API",
		Long: `serve shows charts, videos, full-text search and the budgets, as web pages and as JSON.
It never asks the upstream, so no request costs a unit. /openapi.json describes the API.

It listens on this machine alone unless serve: in quota.yaml says otherwise. With public: true,
budgets, forecast, plan, log and decisions need a token of token_file. With limits: and policies:,
it limits its callers, and decides for other programs.`,
		Example: `  ingestor serve
  ingestor serve --demo                       with made-up charts, without a key
  curl -s http://127.0.0.1:8080/v1/charts/US | jq -r '.videos[].title'`,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.serve(c.Context(), address, demo)
		},
	}
	c.Flags().StringVar(&address, "listen", "", "`ADDR` to listen on instead of that of serve:")
	c.Flags().BoolVar(&demo, "demo", false,
		"serve a made-up, bad day: charts of the stand-in, a bucket that is used up, a job that is "+
			"denied, a suspension")
	return c
}

func (a *app) serve(ctx context.Context, address string, demo bool) error {
	cfg, stop, err := a.loadOrDemo(ctx, demo)
	if err != nil {
		return err
	}
	defer stop()
	if err := cli.Listens(cfg, address); err != nil {
		return err
	}
	if demo {
		if err := errors.Join(a.demoDay(ctx, cfg), a.demoTrouble(ctx, cfg)); err != nil {
			return err
		}
	}
	c, err := catalog.Open(ctx, cfg.Catalog)
	if err != nil {
		return err
	}
	return errors.Join(a.ServeLedger(ctx, cfg, c, os.Environ()), c.Close())
}

// demoSweep fills the catalogue of the demo from its stand-in.
func (a *app) demoSweep(ctx context.Context, cfg *config.Config) error {
	st, err := a.open(ctx, cfg, a.Logger(), nil)
	if err != nil {
		return err
	}
	_, err = st.sweep().Execute(ctx)
	return errors.Join(err, st.Close())
}
