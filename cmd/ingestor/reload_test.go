package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"quotabudget/internal/config"
)

// TestWatch: a change is told once it has lasted from one look to the next, whatever was written before that.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	file, costs := filepath.Join(dir, "quota.yaml"), filepath.Join(dir, "costs.yaml")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(path, text string) { // with the same size and time
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		write(path+".new", text)
		if err := os.Chtimes(path+".new", info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "one")
	write(costs, "list")
	synctest.Test(t, func(t *testing.T) {
		cfg := &config.Config{File: file, CostsFile: costs}
		c := &configuration{cfg: cfg, loaded: stampsOf(cfg)}
		reload, hangup, ended := make(chan struct{}, 1), make(chan os.Signal, 1), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(ended)
			c.watch(ctx, hangup, reload)
		}()
		asked := func(within time.Duration, want bool, when string) {
			t.Helper()
			time.Sleep(within)
			synctest.Wait()
			got := false
			select {
			case <-reload:
				got = true
				c.set(cfg, stampsOf(cfg))
			default:
			}
			if got != want {
				t.Errorf("%s: asked for a reload: %t", when, got)
			}
		}
		asked(time.Minute, false, "nothing changed")
		write(file, "")
		asked(lookAtFiles, false, "cut off a moment ago")
		write(file, "another")
		asked(lookAgain, false, "still being written")
		asked(lookAgain, true, "done")
		asked(time.Minute, false, "loaded")
		replace(file, "ANOTHER")
		asked(lookAtFiles+lookAgain, true, "another file of the same size and time")
		write(costs, "a longer list")
		asked(lookAtFiles+lookAgain, true, "another price list")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		asked(lookAtFiles, false, "missing for a moment")
		write(file, "back")
		asked(2*lookAgain, true, "back")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		asked(lookAtFiles+lookAgain, true, "missing, which is told")
		asked(time.Minute, false, "still missing")
		hangup <- syscall.SIGHUP
		asked(0, true, "SIGHUP")
		cancel()
		<-ended
	})
}

// TestChangedWhileLoading: what is written between the reading of a file and the first look at it is seen.
func TestChangedWhileLoading(t *testing.T) {
	file := filepath.Join(t.TempDir(), "quota.yaml")
	if err := os.WriteFile(file, []byte("ingest: {pages: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := new(app)
	a.Config = file
	read := 0
	a.getenv = func(name string) string {
		if name == "QUOTA_LEDGER" { // it is asked for when the file has been read
			if read++; read == 2 {
				if err := os.WriteFile(file, []byte("ingest: {pages: 2}\n\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		return map[string]string{"QUOTA_STATE_DIR": t.TempDir()}[name]
	}
	cfg, loaded, err := a.loadStamped(t.Context(), "")
	if err != nil || cfg.Ingest.Pages != 1 || loaded.same(stampsOf(cfg)) {
		t.Errorf("%d pages, the file looks as it did: %t, %v", cfg.Ingest.Pages, loaded.same(stampsOf(cfg)), err)
	}
}

// daemonConfig is a file for a daemon that runs one region's ticks, one of which is due at once.
const daemonConfig = `
credentials:
  - name: key1
    api_key: {env: YOUTUBE_API_KEY}
    limits: [{bucket: default, units: 1000000, window: 24h}]
ingest: {regions: [US], schedule: "@every 1s", stagger: 0s, pages: 2, listen: "127.0.0.1:0"}
`

// TestHangupWhileDraining: SIGHUP does not end a daemon that is storing its last page.
func TestHangupWhileDraining(t *testing.T) {
	h, env := holding(t, 1)
	file := filepath.Join(t.TempDir(), "quota.yaml")
	if err := os.WriteFile(file, []byte(daemonConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	p := begin(t, env, "ingestor", "run", "--config", file)
	<-h.arrived
	url := "http://" + served.FindStringSubmatch(p.stderr.String())[1] + "/"
	p.signal(t, syscall.SIGTERM)
	for { // health is not served any more when it drains
		resp, err := http.Get(url + "healthz")
		if err != nil {
			break
		}
		resp.Body.Close()
	}
	p.signal(t, syscall.SIGHUP)
	close(h.proceed)
	if code := p.code(); code != 0 || !strings.Contains(p.stderr.String(), "msg=ended") {
		t.Errorf("%v: %s", p.ProcessState, p.stderr.String())
	}
}

// TestHangupWhileStarting: SIGHUP does not end a daemon that waits for its ledger.
func TestHangupWhileStarting(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	p := begin(t, []string{"YOUTUBE_API_KEY=any", "QUOTA_LEDGER=redis://" + silent.Addr().String() + "/0"}, "ingestor", "run")
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGHUP)
	silent.Close()
	conn.Close()
	if code := p.code(); code != 69 {
		t.Errorf("%v: %s", p.ProcessState, p.stderr.String())
	}
}
