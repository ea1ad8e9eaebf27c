package config

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"quotabudget/internal/textfile"
)

// Live is the configuration of a process that reloads it when its files change.
type Live struct {
	getenv func(string) string

	mu   sync.Mutex
	cfg  *Config
	seen stamps // of the files before they were last read, even if what they held was refused
}

// LoadLive is Load, for a configuration that is reloaded later.
func LoadLive(ctx context.Context, path string, getenv func(string) string) (*Live, error) {
	l := &Live{getenv: getenv}
	cfg, seen, err := l.load(ctx, path)
	if err != nil {
		return nil, err
	}
	l.set(cfg, seen)
	return l, nil
}

// Config is the configuration in force.
func (l *Live) Config() *Config {
	cfg, _ := l.get()
	return cfg
}

func (l *Live) get() (*Config, stamps) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg, l.seen
}

func (l *Live) set(cfg *Config, seen stamps) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg, l.seen = cfg, seen
}

// Reload reads the files in force again. What it reads is in force from then on if use takes it.
func (l *Live) Reload(ctx context.Context, use func(*Config) error) error {
	now := l.Config()
	l.set(now, stampsOf(now))
	cfg, seen, err := l.loadAgain(ctx, now)
	if err != nil {
		return err
	}
	if err := use(cfg); err != nil {
		return err
	}
	l.set(cfg, seen)
	return nil
}

// loadAgain reads the same file as before, or looks for one where there was none. Looking elsewhere
// after the file was moved away, or accepting an empty one, would put the defaults in force: limits
// that nobody has asked for.
func (l *Live) loadAgain(ctx context.Context, now *Config) (*Config, stamps, error) {
	for _, file := range []string{now.File, now.CostsFile} {
		if textfile.IsPipe(file) {
			return nil, stamps{}, fmt.Errorf("%s: a pipe cannot be read again: restart the daemon",
				file)
		}
	}
	cfg, seen, err := l.load(ctx, now.File)
	if err == nil && cfg.Empty && !now.Empty {
		err = fmt.Errorf("%s: the file is empty", cfg.File)
	}
	return cfg, seen, err
}

// load reads the configuration, and returns what its files looked like before that, so that a
// change while they are read shows later. Which files they are is known only afterwards, so they
// are read twice, except for a pipe.
func (l *Live) load(ctx context.Context, path string) (*Config, stamps, error) {
	cfg, err := Load(ctx, path, l.getenv)
	if err != nil {
		return nil, stamps{}, err
	}
	before := stampsOf(cfg)
	if textfile.IsPipe(cfg.File) || textfile.IsPipe(cfg.CostsFile) {
		return cfg, before, nil
	}
	cfg, err = Load(ctx, cfg.File, l.getenv)
	return cfg, before, err
}

const (
	lookAtFiles = 5 * time.Second // how often the files of the configuration are looked at
	lookAgain   = time.Second     // after they were found changed
)

// Watch asks for a reload on each hangup, and when the files are not what they were when they were
// last read. A changed file counts once it is the same on two looks in a row: its writer may not be
// done. Watch returns when ctx ends.
func (l *Live) Watch(ctx context.Context, hangup <-chan os.Signal, reload chan<- struct{}) error {
	ask := func() {
		select {
		case reload <- struct{}{}:
		default: // asked for already
		}
	}
	look := time.NewTimer(lookAtFiles)
	defer look.Stop()
	for _, last := l.get(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
			ask()
		case <-look.C:
			cfg, loaded := l.get()
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

func stampsOf(cfg *Config) stamps { return stamps{stampOf(cfg.File), stampOf(cfg.CostsFile)} }

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
	return s.info.ModTime().Equal(t.info.ModTime()) && s.info.Size() == t.info.Size() &&
		os.SameFile(s.info, t.info)
}
