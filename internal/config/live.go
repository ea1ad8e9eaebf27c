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

// loaded is a configuration with the stamp of its files before they were last read, even if the
// content was refused.
type loaded struct {
	cfg   *Config
	files string // path, inode, size and time of each
}

// look returns the configuration with the current stamp of its files.
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

// LoadLive is Load for a daemon, which later reloads the configuration, and uses the default
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

// Config returns the current configuration.
func (l *Live) Config() *Config { return l.now.Load().cfg }

// Reload reads the same files as before, or searches for one if there was none. The new
// configuration becomes current if use accepts it. Reload does not search again after the file was
// moved, and refuses an empty file: either would apply the default limits without warning.
func (l *Live) Reload(ctx context.Context, use func(*Config) error) error {
	was := l.Config()
	l.now.Store(look(was))
	for _, file := range []string{was.File, was.CostsFile} {
		if IsPipe(file) {
			return fmt.Errorf("%s: a pipe cannot be read again: restart the daemon", file)
		}
	}
	next, err := l.load(ctx, was.File)
	switch {
	case err != nil:
		return err
	case next.cfg.Empty && !was.Empty:
		return fmt.Errorf("%s: the file is empty", next.cfg.File)
	}
	if err := use(next.cfg); err != nil {
		return err
	}
	l.now.Store(next)
	return nil
}

// load reads the configuration, and returns the stamp that its files had before, so that a change
// during reading is detected later. The files are known only after reading, so load reads them
// twice, except for a pipe.
func (l *Live) load(ctx context.Context, path string) (*loaded, error) {
	s := l.search
	s.Path = path
	cfg, err := s.Load(ctx)
	if err != nil {
		return nil, err
	}
	next := look(cfg)
	if !IsPipe(cfg.File) && !IsPipe(cfg.CostsFile) {
		s.Path = cfg.File
		if next.cfg, err = s.Load(ctx); err != nil {
			return nil, err
		}
	}
	next.cfg.Ingest.Scheduled = true
	return next, nil
}

const (
	checkInterval = 5 * time.Second // between two checks of the files
	afterChange   = time.Second     // between two checks after a change
)

// Watch requests a reload on each hangup signal, and when the files differ from those last read. A
// change counts once two checks in a row find the same stamp, because the writer may not have
// finished. Watch returns when ctx ends.
func (l *Live) Watch(ctx context.Context, hangup <-chan os.Signal, reload chan<- struct{}) error {
	ask := func() {
		select {
		case reload <- struct{}{}:
		default: // a reload is pending
		}
	}
	timer := time.NewTimer(checkInterval)
	defer timer.Stop()
	for last := l.now.Load(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
			ask()
		case <-timer.C:
			current := l.now.Load()
			latest, wait := look(current.cfg), checkInterval
			switch {
			case latest.files == current.files:
			case latest.files == last.files:
				ask()
			default:
				wait = afterChange
			}
			last = latest
			timer.Reset(wait)
		}
	}
}
