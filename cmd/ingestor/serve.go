package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/report"
	"quotabudget/internal/serve"
	"quotabudget/internal/textfile"
)

func serveCommand(a *app) *cobra.Command {
	var address string
	var demo bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the catalogue as an HTTP API and as pages",
		Long: `serve answers what the catalogue has: charts now and at a moment, what changed
between them, videos with their histories, and full-text search. It never asks the upstream, so no
answer costs a unit. The API is described at /openapi.json.

It listens on this machine alone unless serve: in quota.yaml says otherwise. With public: true,
budgets, forecast, plan and log need a token of token_file.

Ctrl-C and SIGTERM end it; requests under way are still answered.`,
		Example: `  ingestor serve
  ingestor serve --demo                          with made-up charts, without a key
  curl -s http://127.0.0.1:8080/v1/charts/US | jq -r '.videos[].title'`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command,
			_ []string) error {
			return a.serve(c.Context(), address, demo)
		},
	}
	c.Flags().StringVar(&address, "listen", "", "`ADDR` to listen on instead of that of serve:")
	c.Flags().BoolVar(&demo, "demo", false, "serve made-up charts, fetched from the stand-in")
	return c
}

func (a *app) serve(ctx context.Context, address string, demo bool) error {
	if address != "" && !addressable(address) {
		return cli.Usagef("--listen %q: write host:port, such as %s", address, config.DefaultServe)
	}
	cfg, stop, err := a.loadOrDemo(ctx, demo)
	if err != nil {
		return err
	}
	defer stop()
	if address != "" {
		cfg.Serve.Listen = address
	}
	if demo {
		if err := a.demoSweep(ctx, cfg); err != nil {
			return err
		}
	}
	c, err := catalog.Open(ctx, cfg.Catalog)
	if err != nil {
		return err
	}
	l, err := cli.OpenLedger(ctx, cfg.Ledger)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	src := report.Source{Config: cfg, Ledger: l}
	door, err := a.frontDoor(ctx, c, func() report.Source { return src })
	if err == nil {
		fmt.Fprintf(a.Stdout, "http://%s/\n", door.Addr())
		err = door.serve(ctx)
	}
	return errors.Join(err, l.Close(), c.Close())
}

// door is where requests come in, and what answers them.
type door struct {
	net.Listener
	handler http.Handler
	grace   time.Duration
}

// frontDoor opens the configured address. The configuration of serve: is that at the start.
func (a *app) frontDoor(ctx context.Context, c *catalog.Catalog,
	source func() report.Source) (*door, error) {
	cfg := source().Config
	server, err := a.server(cfg, c)
	if err != nil {
		return nil, err
	}
	server.Source, server.Done = source, ctx.Done()
	handler, err := server.Handler()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", cfg.Serve.Listen)
	if err != nil {
		return nil, cli.Hint(err, "another program may listen there: choose another address with "+
			"listen: under serve: or --listen; port 0 picks a free one")
	}
	server.Log.Info("serving", "address", listener.Addr().String())
	return &door{Listener: listener, handler: handler, grace: cfg.Daemon.Grace}, nil
}

func (d *door) serve(ctx context.Context) error {
	return serve.Serve(ctx, d.Listener, d.handler, d.grace)
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

// server is what the configuration says of serving.
func (a *app) server(cfg *config.Config, c *catalog.Catalog) (*serve.Server, error) {
	s := &serve.Server{Catalog: c, Regions: regionNames(cfg), Hosts: cfg.Serve.Hosts,
		Public: cfg.Serve.Public, Log: a.Logger()}
	if cfg.Serve.TokenFile == "" {
		return s, nil
	}
	text, err := textfile.Read(cfg.Serve.TokenFile, 1<<16)
	if err != nil {
		return nil, &cli.Coded{Code: cli.ExitConfig, Err: fmt.Errorf("token_file: %w", err)}
	}
	s.Tokens = serve.NewTokens(string(text))
	return s, nil
}
