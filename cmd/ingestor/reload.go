package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/daemon"
	"quotabudget/internal/textfile"
)

// configuration is the one that a daemon runs by, and what its files looked like.
type configuration struct {
	mu     sync.Mutex
	cfg    *config.Config
	loaded stamps // before they were read last, be it that what stood in them was refused
}

func (c *configuration) get() (*config.Config, stamps) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cfg, c.loaded
}

func (c *configuration) set(cfg *config.Config, loaded stamps) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg, c.loaded = cfg, loaded
}

// reload reads the configuration in force again, for the ledger and the catalogue that are open.
func (a *app) reload(ctx context.Context, open *station, conf *configuration) (*daemon.Work, error) {
	now, _ := conf.get()
	conf.set(now, stampsOf(now))
	cfg, loaded, err := a.loadAgain(ctx, now)
	if err != nil {
		return nil, err
	}
	next, err := a.restation(ctx, open, cfg)
	if err != nil {
		return nil, err
	}
	w, err := next.daemonWork()
	if err == nil {
		conf.set(cfg, loaded)
	}
	return w, err
}

// loadAgain reads the very file that is in force, or looks for one where none is. Looking anew after it was moved away, or taking
// an empty one for a wish, would put the defaults in force: limits that nobody has asked for.
func (a *app) loadAgain(ctx context.Context, now *config.Config) (*config.Config, stamps, error) {
	for _, file := range []string{now.File, now.CostsFile} {
		if textfile.IsPipe(file) {
			return nil, stamps{}, fmt.Errorf("%s: a pipe cannot be read again: restart the daemon", file)
		}
	}
	cfg, loaded, err := a.loadStamped(ctx, now.File)
	if err == nil && cfg.Empty && !now.Empty {
		err = fmt.Errorf("%s: the file is empty", cfg.File)
	}
	return cfg, loaded, err
}

// loadStamped reads the configuration, and says what its files looked like before that: what changes meanwhile shows later. They
// are known only once they have been read, so they are read twice, but for a pipe. A path of "" is for the usual places.
func (a *app) loadStamped(ctx context.Context, path string) (*config.Config, stamps, error) {
	if path == "" {
		path = a.Config
	}
	cfg, err := config.Load(ctx, path, a.getenv)
	if err != nil {
		return nil, stamps{}, err
	}
	before := stampsOf(cfg)
	if textfile.IsPipe(cfg.File) || textfile.IsPipe(cfg.CostsFile) {
		return cfg, before, nil
	}
	cfg, err = config.Load(ctx, cfg.File, a.getenv)
	return cfg, before, err
}

// restation wires what is open by another configuration.
func (a *app) restation(ctx context.Context, open *station, cfg *config.Config) (*station, error) {
	if cfg.Ledger != open.cfg.Ledger || cfg.Catalog != open.cfg.Catalog || cfg.Daemon.Listen != open.cfg.Daemon.Listen {
		return nil, errors.New("ledger, catalog and listen cannot change while the daemon runs: restart it")
	}
	cred, err := a.chosen(cfg)
	if err != nil {
		return nil, err
	}
	if cred.Name != open.cred.Name {
		return nil, fmt.Errorf("the credential cannot change from %s to %s while the daemon runs: restart it", open.cred.Name, cred.Name)
	}
	next := &station{cfg: cfg, cred: cred, catalog: open.catalog, metrics: open.metrics, log: open.log,
		budget: cred.Budget(open.budget.Ledger, cfg.Costs, open.log)}
	if cred.APIKey.File != open.cred.APIKey.File {
		cred.APIKey.WarnExposed(open.log)
	}
	next.client, err = newClient(ctx, next)
	return next, err
}

const (
	lookAtFiles = 5 * time.Second // how often the files of the configuration are looked at
	lookAgain   = time.Second     // after they were found changed
)

// watch asks for a reload when SIGHUP comes, or when the files are not those that were read last and have been the same on two
// looks running: who writes one may not be done with it. It returns when ctx ends.
func (c *configuration) watch(ctx context.Context, hangup <-chan os.Signal, reload chan<- struct{}) error {
	ask := func() {
		select {
		case reload <- struct{}{}:
		default: // asked for already
		}
	}
	look := time.NewTimer(lookAtFiles)
	defer look.Stop()
	for _, last := c.get(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
			ask()
		case <-look.C:
			cfg, loaded := c.get()
			now, wait := stampsOf(cfg), lookAtFiles
			switch {
			case now.same(loaded):
			case now.same(last):
				ask()
			default:
				wait = lookAgain
			}
			last = now
			look.Reset(wait)
		}
	}
}

// stamps tell the files of a configuration from what they were before.
type stamps struct{ file, costs stamp }

func stampsOf(cfg *config.Config) stamps { return stamps{stampOf(cfg.File), stampOf(cfg.CostsFile)} }

func (s stamps) same(t stamps) bool { return s.file.same(t.file) && s.costs.same(t.costs) }

// stamp is what a file looks like from outside.
type stamp struct {
	path string      // "" for none
	info os.FileInfo // nil when it is missing
}

func stampOf(path string) stamp {
	if path == "" {
		return stamp{}
	}
	info, err := os.Stat(path)
	if err != nil {
		info = nil
	}
	return stamp{path, info}
}

func (s stamp) same(t stamp) bool {
	if s.path != t.path || s.info == nil || t.info == nil {
		return s.path == t.path && s.info == nil && t.info == nil
	}
	return s.info.ModTime().Equal(t.info.ModTime()) && s.info.Size() == t.info.Size() && os.SameFile(s.info, t.info)
}
