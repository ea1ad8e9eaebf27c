package main

import (
	"net"
	"strings"
	"syscall"
	"testing"
)

// daemonConfig configures a daemon with one region, of which a tick is due at once.
const daemonConfig = `
credentials:
  - name: key1
    api_key: {env: YOUTUBE_API_KEY}
    limits: [{bucket: default, units: 1000000, window: 24h}]
ingest: {regions: [US], schedule: "@every 1s", stagger: 0s, pages: 2, listen: "127.0.0.1:0"}
`

// TestHangupWhileDraining: SIGHUP does not end a daemon that is storing its last page.
func TestHangupWhileDraining(t *testing.T) {
	t.Parallel()
	h, env := holding(t, 1)
	p := begin(t, env, "ingestor", "run", "--config", configFile(t, daemonConfig))
	<-h.arrived
	p.signal(t, syscall.SIGTERM)
	for err := error(nil); err == nil; { // a draining daemon no longer serves health checks
		_, err = p.get("healthz")
	}
	p.signal(t, syscall.SIGHUP)
	close(h.proceed)
	if code := p.code(); code != 0 || !strings.Contains(p.stderr.String(), "msg=ended") {
		t.Errorf("%v: %s", p.ProcessState, p.stderr.String())
	}
}

// TestHangupWhileStarting: SIGHUP does not end a daemon that waits for its ledger.
func TestHangupWhileStarting(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	p := begin(t, []string{"YOUTUBE_API_KEY=any",
		"QUOTA_LEDGER=redis://" + silent.Addr().String() + "/0"}, "ingestor", "run")
	conn, err := silent.Accept()
	must(t, err)
	p.signal(t, syscall.SIGHUP)
	silent.Close()
	conn.Close()
	if code := p.code(); code != 69 {
		t.Errorf("%v: %s", p.ProcessState, p.stderr.String())
	}
}
