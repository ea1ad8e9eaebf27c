package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/daemon"
	"quotabudget/internal/ingest"
	"quotabudget/internal/notify"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/serve"
)

// daemon runs the lanes and what answers for them, until one of them returns.
func (a *app) daemon(c *cobra.Command, _ []string) error {
	ctx := c.Context()
	hangup := make(chan os.Signal, 1)
	// as long as the process lives: SIGHUP would end one that is not ready yet, or still drains
	signal.Notify(hangup, syscall.SIGHUP)
	live, err := a.Search().LoadLive(ctx)
	if err != nil {
		return err
	}
	cfg := live.Config()
	log := a.Logger()
	metrics := daemon.NewMetrics()
	st, err := a.open(ctx, cfg, log, metrics)
	if err != nil {
		return err
	}
	w, err := st.daemonConfig()
	if err != nil {
		return errors.Join(err, st.Close())
	}
	log.Info("daemon begins", "file", cfg.File, "ledger", config.HidePassword(cfg.Ledger),
		"catalog", cfg.Catalog, "credential", st.cred.Name, "jobs", len(cfg.Jobs))
	if len(w.Lanes) == 0 {
		log.Warn("nothing is scheduled: add regions to ingest: or a job to jobs: in quota.yaml")
	}
	reload := make(chan struct{}, 1)
	d := &daemon.Daemon{
		Config: w, Reload: reload, Holder: quota.NewID(time.Now()), Log: log, Metrics: metrics,
	}
	source := func() report.Source { return report.Source{Config: live.Config(), Ledger: st.ledger} }
	n := notify.New(source, os.Environ(), log)
	d.Missed = n.Missed
	d.Load = func(ctx context.Context) (*daemon.Config, error) { return a.reload(ctx, st, live) }
	handler := d.Handler()
	listener, err := listen(cfg.Daemon.Listen, log)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, end := context.WithCancel(ctx)
	defer end()
	if cfg.Serve.Configured {
		front, err := a.FrontDoor(ctx, st.catalog, source)
		if err != nil {
			return errors.Join(err, st.Close())
		}
		group.Go(func() error { return front.Serve(ctx) })
	}
	if listener != nil {
		group.Go(func() error { return serveHealth(ctx, listener, handler) })
	}
	group.Go(func() error { return live.Watch(ctx, hangup, reload) })
	group.Go(func() error {
		a.ExportMetrics(ctx, "ingestor", metrics.Registry)
		return nil
	})
	group.Go(func() error {
		st.watchCalls(ctx)
		return nil
	})
	group.Go(func() error {
		defer end()
		return d.Run(ctx)
	})
	if err = n.During(ctx, group.Wait); err == nil {
		log.Info("ended")
	}
	return errors.Join(err, st.Close())
}

func (s *deps) daemonConfig() (*daemon.Config, error) {
	lanes, err := s.lanes(s.sweep(), true)
	if err != nil {
		return nil, err
	}
	d := s.cfg.Daemon
	return &daemon.Config{
		Lanes: lanes, Claims: s.ledger, Spending: s.ledger, Catalog: s.catalog, Lease: d.Lease,
		Grace: d.Grace, ForecastEvery: time.Minute, Describe: s.describe,
	}, nil
}

// describe completes the question of a forecast: it adds the lanes that run elsewhere, and sets
// the buckets' resets and units by the price list.
func (s *deps) describe(ctx context.Context, q *plan.Question) error {
	cred, err := s.cfg.Credential(q.Credential)
	if err != nil {
		return err
	}
	table := s.cfg.Table(cred)
	q.Amount = func(bucket string, units int64) string {
		return report.UnitOf(table, bucket).Text(units)
	}
	for name := range q.Resets {
		if b, ok := table.Bucket(name); ok {
			q.Resets[name] = b.Reset
		}
	}
	lanes, err := report.Source{Config: s.cfg, Ledger: s.ledger}.JobLanes(ctx, cred)
	for _, l := range lanes {
		if l.External {
			q.Lanes = append(q.Lanes, l)
		}
	}
	return err
}

// lanes returns the lanes of all kinds of jobs, to be run or only to be counted. To add a kind,
// make its lanes here.
func (s *deps) lanes(sweep *ingest.Sweep, toRun bool) ([]daemon.Lane, error) {
	regions, err := s.cfg.Lanes()
	if err != nil {
		return nil, err
	}
	jobs, err := s.jobLanes(toRun)
	if err != nil {
		return nil, err
	}
	d := s.cfg.Daemon
	work := &daemon.Sweep{Sweep: *sweep, Jitter: d.Jitter, CatchUp: d.CatchUp}
	return append(work.Lanes(regions), jobs...), nil
}

// listen opens the address for health and metrics; none for "".
func listen(address string, log *slog.Logger) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, cli.Hint(err, "another daemon of this machine may listen there: "+
			"set listen: under ingest:, \"\" for none")
	}
	bound := listener.Addr().(*net.TCPAddr)
	if !bound.IP.IsLoopback() {
		log.Warn("other machines can read health and metrics", "address", bound.String())
	}
	log.Info("health and metrics are served", "address", bound.String())
	return listener, nil
}

func serveHealth(ctx context.Context, listener net.Listener, handler http.Handler) error {
	err := serve.Serve(ctx, listener, handler, nil, 0)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("health and metrics: %w", err)
}

// reload rereads the configuration for the open ledger and catalogue.
func (a *app) reload(ctx context.Context, open *deps,
	live *config.Live) (c *daemon.Config, err error) {
	err = live.Reload(ctx, func(cfg *config.Config) error {
		next, err := a.rewire(ctx, open, cfg)
		if err == nil {
			c, err = next.daemonConfig()
		}
		return err
	})
	return c, err
}

// rewire applies another configuration to the open ledger and catalogue.
func (a *app) rewire(ctx context.Context, open *deps, cfg *config.Config) (*deps, error) {
	was := open.cfg
	if cfg.Ledger != was.Ledger || cfg.Catalog != was.Catalog ||
		cfg.Daemon.Listen != was.Daemon.Listen || !reflect.DeepEqual(cfg.Serve, was.Serve) {
		return nil, errors.New("ledger, catalog, listen and serve cannot change while the daemon " +
			"runs: restart it")
	}
	next := &deps{cfg: cfg, ledger: open.ledger, catalog: open.catalog, metrics: open.metrics,
		log: open.log}
	if !next.sweeps() {
		return next, nil
	}
	cred, err := a.chosen(cfg)
	if err != nil {
		return nil, err
	}
	if open.sweeps() && cred.Name != open.cred.Name {
		return nil, fmt.Errorf("the credential cannot change from %s to %s while the daemon runs: "+
			"restart it", open.cred.Name, cred.Name)
	}
	if cred.APIKey.File != open.cred.APIKey.File {
		cred.APIKey.WarnExposed(open.log)
	}
	next.cred = cred
	return next, next.wire(ctx)
}
