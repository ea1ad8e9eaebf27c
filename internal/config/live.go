package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// Live is the configuration of a process that reloads it when its files change.
type Live struct {
	search Search
	now    atomic.Pointer[loaded]
}

// loaded is a configuration, and what its files looked like before they were last read, even if
// what they held then was refused.
type loaded struct {
	cfg   *Config
	files string // path, inode, size and time of each
}

// look is the configuration with its files as they look now.
func look(cfg *Config) *loaded {
	paths := []string{cfg.File, cfg.CostsFile}
	if cfg.CostsFile != "" && cfg.Prices != nil {
		for _, name := range cfg.Prices.Files() {
			paths = append(paths, filepath.Join(filepath.Dir(cfg.CostsFile), name))
		}
	}
	l := &loaded{cfg: cfg}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			file, _ := info.Sys().(*syscall.Stat_t)
			l.files += fmt.Sprintln(path, file.Ino, info.Size(), info.ModTime().UnixNano())
		}
	}
	return l
}

// LoadLive is Load for a daemon, which reloads the configuration later and follows the default
// schedule if none is configured.
func (s Search) LoadLive(ctx context.Context) (*Live, error) {
	l := &Live{search: s}
	first, err := l.load(ctx, s.Path)
	if err != nil {
		return nil, err
	}
	l.now.Store(first)
	return l, nil
}

// Config is the configuration in force.
func (l *Live) Config() *Config { return l.now.Load().cfg }

// Reload reads the files in force again. What it reads is in force from then on if use takes it.
func (l *Live) Reload(ctx context.Context, use func(*Config) error) error {
	was := l.Config()
	l.now.Store(look(was))
	next, err := l.loadAgain(ctx, was)
	if err != nil {
		return err
	}
	if err := use(next.cfg); err != nil {
		return err
	}
	l.now.Store(next)
	return nil
}

// loadAgain reads the same file as before, or looks for one where there was none. Looking elsewhere
// after the file was moved away, or accepting an empty one, would put the defaults in force: limits
// that nobody has asked for.
func (l *Live) loadAgain(ctx context.Context, now *Config) (*loaded, error) {
	for _, file := range []string{now.File, now.CostsFile} {
		if IsPipe(file) {
			return nil, fmt.Errorf("%s: a pipe cannot be read again: restart the daemon", file)
		}
	}
	next, err := l.load(ctx, now.File)
	if err == nil && next.cfg.Empty && !now.Empty {
		err = fmt.Errorf("%s: the file is empty", next.cfg.File)
	}
	return next, err
}

// load reads the configuration, and returns what its files looked like before that, so that a
// change while they are read shows later. Which files they are is known only afterwards, so they
// are read twice, except for a pipe.
func (l *Live) load(ctx context.Context, path string) (*loaded, error) {
	s := l.search
	s.Path = path
	cfg, err := s.Load(ctx)
	if err != nil {
		return nil, err
	}
	found := look(cfg)
	if !IsPipe(cfg.File) && !IsPipe(cfg.CostsFile) {
		s.Path = cfg.File
		if found.cfg, err = s.Load(ctx); err != nil {
			return nil, err
		}
	}
	found.cfg.Ingest.Scheduled = true
	return found, nil
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
	timer := time.NewTimer(lookAtFiles)
	defer timer.Stop()
	for last := l.now.Load(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
			ask()
		case <-timer.C:
			known := l.now.Load()
			now, wait := look(known.cfg), lookAtFiles
			switch {
			case now.files == known.files:
			case now.files == last.files:
				ask()
			default:
				wait = lookAgain
			}
			last = now
			timer.Reset(wait)
		}
	}
}
