package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"quotabudget/internal/config"
	"quotabudget/internal/daemon"
)

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
