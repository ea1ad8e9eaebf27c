package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/ingest"
	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
	"quotabudget/internal/standin"
)

// demoLatency makes the demo's stand-in about as slow as a nearby server.
const demoLatency = 40 * time.Millisecond

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
	if a.Getenv("QUOTA_STATE_DIR") != "" && a.Getenv(config.KeyVariable) == "" {
		own, err := a.Load(ctx) // an invalid configuration counts as one
		configured := err != nil || own.File != "" && own.File != os.DevNull || len(own.Environment) > 0
		if !configured && absentFile(cfg.Ledger) && absentFile(cfg.Catalog) {
			return cfg, nil
		}
	}
	usual, err := sqlite.ParseURL(cfg.Ledger)
	if err != nil {
		return nil, err
	}
	own["QUOTA_STATE_DIR"] = filepath.Join(filepath.Dir(usual), "demo")
	return config.Load(ctx, "", getenv)
}

const headPlaces = 3

func drawHeads(s cli.Screen, c *catalog.Catalog, sum ingest.Summary) {
	t := new(cli.Table)
	for _, r := range sum.Regions {
		_, videos, _ := c.Current(context.Background(), r.Region, headPlaces) // may be empty
		cli.Extend(t, videos, func(v catalog.Ranked) cli.Row {
			return cli.Row{"chart", r.Region, ">place", v.Rank, "title", v.Title,
				"channel", v.ChannelTitle, ">views", v.Views}
		})
	}
	s.Say("\nThe heads of the charts (made up by the stand-in):\n")
	s.Draw(t, cli.Cut("title", 20), cli.Cut("channel", 8))
	s.Say("\nLedger and catalogue are in %s\n", filepath.Dir(c.Path()))
}

const (
	// demoTicks is the number of sweeps in a day of the demo, the last one a few minutes ago.
	demoTicks = 8
	demoEvery = 3 * time.Hour
	// demoSpeed is the speed of the demo's past clock: a sweep takes some minutes by it.
	demoSpeed = 400
)

// demoDay plays the last day: a sweep every three hours, and other spending between them. The
// sweeps really read a stand-in; only the clocks of the ledger and the catalogue are set back. An
// existing demo gets one more sweep instead, because a ledger's clock never runs backwards.
func (a *app) demoDay(ctx context.Context, cfg *config.Config) error {
	c, err := catalog.Open(ctx, cfg.Catalog)
	if err != nil {
		return err
	}
	runs, err := c.Runs(ctx, time.Time{}, 1)
	if err = errors.Join(err, c.Close()); err != nil {
		return err
	}
	if len(runs) > 0 {
		st, err := a.open(ctx, cfg, a.Logger(), nil)
		if err != nil {
			return err
		}
		_, err = st.sweep().Execute(ctx)
		return errors.Join(err, st.Close())
	}
	charts := standin.Generator{Days: demoTicks}.Charts()
	last := time.Now().Add(-5 * time.Minute)
	for left := demoTicks - 1; left >= 0 && err == nil; left-- {
		standin := &standin.YouTube{Charts: charts, DaysBack: left}
		err = a.demoTick(ctx, *cfg, standin, last.Add(-time.Duration(left)*demoEvery))
	}
	return err
}

// demoTrouble adds faults to the day, so that a newcomer sees how they look: a job that exhausted a
// bucket, a job denied because of it, and a bucket suspended by the upstream.
func (a *app) demoTrouble(ctx context.Context, cfg *config.Config) error {
	const searches, uploads = "search_list", "video_insert"
	cred := cfg.Credentials[0]
	cfg.Jobs = append(cfg.Jobs, config.OwnJob{Name: "report", Command: []string{"report"},
		Schedule: "30 * * * *", Timezone: time.UTC, Timeout: time.Hour, Settle: "all", Weight: 1,
		Cost:       config.JobCost{Costs: []quota.Cost{{Bucket: searches, Units: 4}}},
		Credential: cred.Name, CatchUp: true})
	l, err := cli.OpenLedger(ctx, cfg.Ledger)
	if err != nil {
		return err
	}
	defer l.Close()
	budget := cred.Budget(l, cfg.Table(cred), a.Logger())
	usage, err := budget.Usage(ctx)
	if err != nil {
		return err
	}
	for _, b := range usage.Buckets {
		if b.Bucket != searches {
			continue
		}
		left := b.Limits[0].Remaining
		for _, limit := range b.Limits {
			left = min(left, limit.Remaining)
		}
		if left > 0 {
			call := quota.Call{Bucket: searches, Units: left,
				Labels: quota.Labels{quota.LabelJob: "keywords"}}
			if _, err = budget.Charge(ctx, call); err == nil {
				call.Units = 1
				_, err = budget.Charge(ctx, call) // is denied
			}
		}
	}
	until := usage.At.Add(3 * time.Hour)
	return errors.Join(err, l.Suspend(ctx, quota.Suspension{Credential: cred.Name, Bucket: uploads,
		Until: until, By: quota.ByUpstream, Reason: "quotaExceeded"}))
}

// demoTick sweeps a stand-in at a past time.
func (a *app) demoTick(ctx context.Context, cfg config.Config, standin http.Handler,
	then time.Time) error {
	address, stop, err := serveHere(standin)
	if err != nil {
		return err
	}
	defer stop()
	cfg.YouTube.Endpoint = address
	st, err := a.open(ctx, &cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	began := time.Now()
	clock := func() time.Time { // never ahead of the present time
		return then.Add(min(demoSpeed*time.Since(began), time.Since(then)))
	}
	st.ledger.Now = clock
	sweep := st.sweep()
	sweep.Now, sweep.Run = clock, quota.NewRunID(then)
	_, err = sweep.Execute(ctx)
	for _, call := range []quota.Call{
		{Method: "youtube.search.list", Count: 4, Labels: quota.Labels{quota.LabelJob: "report"}},
		{Method: "youtube.channels.list", Count: 300 + 40*int64(then.Hour()%12),
			Labels: quota.Labels{quota.LabelJob: "backfill"}},
	} {
		if err == nil {
			_, err = st.budget.Charge(ctx, call)
		}
	}
	return errors.Join(err, st.Close())
}
