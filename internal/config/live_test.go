package config

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatch: a change is reported once it is unchanged between two checks.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	file, costs := filepath.Join(dir, "quota.yaml"), filepath.Join(dir, "costs.yaml")
	write := func(path, text string) {
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	replace := func(path, text string) { // with the same size and time
		info, err := os.Stat(path)
		must(t, err)
		write(path+".new", text)
		must(t, os.Chtimes(path+".new", info.ModTime(), info.ModTime()))
		must(t, os.Rename(path+".new", path))
	}
	write(file, "one")
	write(costs, "list")
	synctest.Test(t, func(t *testing.T) {
		cfg := &Config{File: file, CostsFile: costs}
		l := &Live{}
		l.now.Store(look(cfg))
		reload, hangup, ended := make(chan struct{}, 1), make(chan os.Signal, 1),
			make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(ended)
			l.Watch(ctx, hangup, reload)
		}()
		asked := func(within time.Duration, want bool, when string) {
			t.Helper()
			time.Sleep(within)
			synctest.Wait()
			got := false
			select {
			case <-reload:
				got = true
				l.now.Store(look(cfg))
			default:
			}
			if got != want {
				t.Errorf("%s: asked for a reload: %t", when, got)
			}
		}
		asked(time.Minute, false, "nothing changed")
		write(file, "")
		asked(checkInterval, false, "cut off a moment ago")
		write(file, "another")
		asked(afterChange, false, "still being written")
		asked(afterChange, true, "done")
		asked(time.Minute, false, "loaded")
		replace(file, "ANOTHER")
		asked(checkInterval+afterChange, true, "another file of the same size and time")
		write(costs, "a longer list")
		asked(checkInterval+afterChange, true, "another price list")
		must(t, os.Remove(file))
		asked(checkInterval, false, "missing for a moment")
		write(file, "back")
		asked(2*afterChange, true, "back")
		must(t, os.Remove(file))
		asked(checkInterval+afterChange, true, "missing, which is reported")
		asked(time.Minute, false, "still missing")
		hangup <- syscall.SIGHUP
		asked(0, true, "SIGHUP")
		cancel()
		<-ended
	})
}

// TestChangedWhileLoading: what is written between the reading of a file and the first look at it
// is seen.
func TestChangedWhileLoading(t *testing.T) {
	file := filepath.Join(t.TempDir(), "quota.yaml")
	must(t, os.WriteFile(file, []byte("ingest: {pages: 1}\n"), 0o600))
	read := 0
	getenv := func(name string) string {
		if name == "QUOTA_LEDGER" { // it is asked for when the file has been read
			if read++; read == 2 {
				must(t, os.WriteFile(file, []byte("ingest: {pages: 2}\n\n"), 0o600))
			}
		}
		return map[string]string{"QUOTA_STATE_DIR": t.TempDir()}[name]
	}
	live, err := Search{Path: file, Getenv: getenv}.LoadLive(t.Context())
	must(t, err)
	now := live.now.Load()
	if as := now.files == look(now.cfg).files; now.cfg.Ingest.Pages != 1 || as {
		t.Errorf("%d pages, the file looks as it did: %t", now.cfg.Ingest.Pages, as)
	}
}

// TestListedFiles: the files that an index of price lists names are looked at, too.
func TestListedFiles(t *testing.T) {
	dir := t.TempDir()
	index, list := filepath.Join(dir, "costs.yaml"), filepath.Join(dir, "one.yaml")
	must(t, os.WriteFile(index, []byte("default: one\nupstreams: {one: one.yaml}\n"), 0o600))
	const text = `hosts: [a.test]
sources: {page: {status: verified, date: 2026-11, text: a page}}
buckets: {units: {}}
methods: {x.get: {route: GET /a, cost: {units: 1}, source: page}}
`
	must(t, os.WriteFile(list, []byte(text), 0o600))
	prices, err := Prices(t.Context(), index)
	must(t, err)
	cfg := &Config{CostsFile: index, Prices: prices}
	before := look(cfg)
	if look(cfg).files != before.files {
		t.Error("a change is seen where there is none")
	}
	must(t, os.WriteFile(list, []byte(text+"note: changed\n"), 0o600))
	if look(cfg).files == before.files {
		t.Error("the change of a listed file is not seen")
	}
}
