package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/ingest"
	"quotabudget/internal/sqlite"
	"quotabudget/internal/standin"
)

// demoLatency makes the demo's stand-in about as slow as a nearby server.
const demoLatency = 40 * time.Millisecond

// loadOrDemo returns the configuration, or the demo's.
func (a *app) loadOrDemo(ctx context.Context, demo bool) (*config.Config, func(), error) {
	if !demo {
		cfg, err := a.Load(ctx)
		return cfg, func() {}, err
	}
	address, stop, err := serveHere(&standin.YouTube{Latency: demoLatency})
	if err != nil {
		return nil, nil, err
	}
	cfg, err := a.demoConfig(ctx, address)
	if err != nil {
		stop()
		return nil, nil, err
	}
	return cfg, stop, nil
}

// serveHere serves a stand-in on a free local port until stop is called.
func serveHere(standin http.Handler) (address string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: standin, ReadHeaderTimeout: time.Minute}
	go server.Serve(listener)
	return "http://" + listener.Addr().String() + "/", func() { server.Close() }, nil
}

// demoConfig returns a configuration that spends nothing real and keeps made-up data apart: the
// stand-in as upstream, a made-up key, no configuration file, and its own state folder. That is the
// folder of QUOTA_STATE_DIR if it has no ledger and no catalogue and neither key nor configuration
// is set, otherwise the folder demo within the usual one.
func (a *app) demoConfig(ctx context.Context, address string) (*config.Config, error) {
	own := map[string]string{
		"QUOTA_CONFIG": "/dev/null", "QUOTA_LEDGER": "", "QUOTA_CATALOG": "",
		"YOUTUBE_ENDPOINT": address, config.KeyVariable: "demo",
	}
	getenv := func(name string) string {
		if value, ok := own[name]; ok {
			return value
		}
		return a.Getenv(name)
	}
	cfg, err := config.Load(ctx, "", getenv)
	if err != nil {
		return nil, err
	}
	if a.Getenv("QUOTA_STATE_DIR") != "" && a.Getenv(config.KeyVariable) == "" &&
		!a.configured(ctx) && absentFile(cfg.Ledger) && absentFile(cfg.Catalog) {
		return cfg, nil
	}
	usual, err := sqlite.ParseURL(cfg.Ledger)
	if err != nil {
		return nil, err
	}
	own["QUOTA_STATE_DIR"] = filepath.Join(filepath.Dir(usual), "demo")
	return config.Load(ctx, "", getenv)
}

// configured reports whether there is a configuration, even an invalid one.
func (a *app) configured(ctx context.Context) bool {
	cfg, err := a.Load(ctx)
	return err != nil || cfg.File != "" && cfg.File != os.DevNull || len(cfg.Environment) > 0
}

const headPlaces = 3

func drawHeads(s cli.Screen, c *catalog.Catalog, sum ingest.Summary) {
	t := s.Table("chart", ">place", "title", "channel", ">views")
	for _, r := range sum.Regions {
		_, videos, err := c.Current(context.Background(), r.Region, headPlaces)
		if err != nil {
			continue // no complete chart yet
		}
		for _, v := range videos {
			t.Row(r.Region, v.Rank, v.Title, v.ChannelTitle, v.Views)
		}
	}
	s.Say("\nThe heads of the charts (made up by the stand-in):\n")
	s.Draw(t, cli.Cut("title", 20), cli.Cut("channel", 8))
	s.Say("\nLedger and catalogue are in %s\n", filepath.Dir(c.Path()))
}
