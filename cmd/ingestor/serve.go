package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/ledger/redisstore"
	"quotabudget/internal/limit"
	"quotabudget/internal/report"
	"quotabudget/internal/serve"
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
		Args: cli.Args(),
		RunE: func(c *cobra.Command,
			_ []string) error {
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
	if address != "" && !cli.Addressable(address) {
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
		if err := errors.Join(a.demoDay(ctx, cfg), a.demoTrouble(ctx, cfg)); err != nil {
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
	close   func() error
}

// frontDoor opens the configured address. Later changes of serve: take effect at the next start.
func (a *app) frontDoor(ctx context.Context, c *catalog.Catalog,
	source func() report.Source) (*door, error) {
	cfg := source().Config
	server, err := serve.New(cfg)
	if err != nil {
		return nil, &cli.Coded{Code: cli.ExitConfig, Err: err}
	}
	config.FileSecret(cfg.Serve.TokenFile, a.Getenv).WarnExposed(a.Logger())
	server.Catalog, server.Log, server.Source = c, a.Logger(), source
	var closeStore func() error
	if server.Guard, closeStore, err = limiter(ctx, cfg); err != nil {
		return nil, err
	}
	if server.Guard != nil {
		server.Guard.Unreachable = undecided(server.Log)
	}
	handler, err := server.Handler()
	if err != nil {
		return nil, errors.Join(&cli.Coded{Code: cli.ExitConfig, Err: err}, closeStore())
	}
	listener, err := net.Listen("tcp", cfg.Serve.Listen)
	if err != nil {
		err = cli.Hint(err, "another program is listening there: choose another address with "+
			"listen: under serve: or --listen; port 0 picks a free one")
		return nil, errors.Join(err, closeStore())
	}
	bound := listener.Addr().(*net.TCPAddr)
	if !bound.IP.IsLoopback() && !server.Public {
		server.Log.Warn("other machines can read the budgets: with public: true under serve: they "+
			"need a token", "address", bound.String())
	}
	server.Log.Info("serving", "address", bound.String())
	return &door{listener, handler, cfg.Daemon.Grace, closeStore}, nil
}

// limiter returns the guard with the configured limits, nil for none, and what closes its store.
func limiter(ctx context.Context, cfg *config.Config) (*limit.Guard, func() error, error) {
	own, nothing := &cfg.Serve, func() error { return nil }
	if len(own.Limits) == 0 {
		return nil, nothing, nil
	}
	g := &limit.Guard{Limits: own.Limits, Caller: own.Known.Of, Stats: &limit.Stats{}}
	if !own.OnRedis {
		g.Store = limit.NewMemory()
		return g, nothing, nil
	}
	client, err := redisstore.Connect(ctx, cfg.Ledger)
	if err != nil {
		return nil, nil, err
	}
	g.Store = limit.NewRedis(client)
	return g, client.Close, nil
}

// undecided logs that limits cannot be checked, once a minute while that lasts.
func undecided(log *slog.Logger) func(*http.Request, error) {
	var logged atomic.Int64
	return func(_ *http.Request, err error) {
		now, last := time.Now().Unix(), logged.Load()
		if now-last >= 60 && logged.CompareAndSwap(last, now) {
			log.Error("limits cannot be checked: when_unreachable says which requests pass",
				"error", err, "hint", "check the Redis server of the ledger")
		}
	}
}

func (d *door) serve(ctx context.Context) error {
	return errors.Join(serve.Serve(ctx, d.Listener, d.handler, d.grace), d.close())
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
