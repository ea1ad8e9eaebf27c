package proxy_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"quotabudget/internal/proxy"
)

// TestGoogleClientShowsWhy: the upstream's own client shows why a call was refused, and does not
// retry it.
func TestGoogleClientShowsWhy(t *testing.T) {
	s := open(t, units(1))
	client := s.googleClient(t, option.WithAPIKey("own"))
	call := client.Videos.List([]string{"id"}).Chart("mostPopular").RegionCode("US")
	if _, err := call.Do(); err != nil {
		t.Fatal(err)
	}
	_, err := call.Do()
	said, ok := err.(*googleapi.Error)
	if !ok || said.Code != 429 || len(said.Errors) != 1 ||
		said.Errors[0].Reason != "quotaExceeded" || len(said.Details) != 1 ||
		!strings.Contains(err.Error(), "default 24h") || said.Header.Get("Retry-After") != "86400" {
		t.Errorf("the client shows: %v", err)
	}
	if n := strings.Count(s.Log.String(), "msg=request"); n != 2 {
		t.Errorf("%d requests for two calls", n)
	}
}

// TestLog: each request is one line with its outcome and its units, without its query, headers or
// keys.
func TestLog(t *testing.T) {
	s := open(t, units(2), func(s *env) { s.Standin.Faults = []string{"500@2"} })
	const videos = "verb=GET path=/youtube/v3/videos "
	for _, c := range []struct{ path, want string }{
		{chart + "&q=secret", "level=INFO msg=request outcome=served status=200 " + videos},
		{chart + "&q=secret",
			"level=WARN msg=request outcome=\"upstream error\" status=500 " + videos},
		{chart + "&q=secret", "level=WARN msg=request outcome=denied status=429 "},
		{"/youtube/v3/captions/a//b?q=secret", "level=WARN msg=request outcome=refused " +
			"status=400 verb=GET path=/youtube/v3/captions/a//b "},
		{"/AIzaSyA0123456789012345678901234567890?q=secret", "path=\"(not shown"},
	} {
		before := len(s.Log.String())
		s.get(t, c.path, "X-Goog-Api-Key", "secret")
		await(t, func() bool { return strings.Contains(s.Log.String()[before:], "msg=request") })
		line := s.Log.String()[before:]
		if !strings.Contains(line, c.want) || strings.Contains(line, "secret") ||
			strings.Contains(line, "AIza") {
			t.Errorf("%s: %s", c.path, line)
		}
	}
	if log := s.Log.String(); strings.Count(log, "units.default=1") != 2 ||
		strings.Count(log, "method=youtube.videos.list") != 3 {
		t.Errorf("log: %s", log)
	}
}

// TestAdmin: the metrics count requests by outcome, and /readyz reports whether a request could be
// charged.
func TestAdmin(t *testing.T) {
	s := open(t, units(1))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.proxy.ServeAdmin(ctx, listener) }()
	admin := front{URL: "http://" + listener.Addr().String()}
	for range 2 {
		s.get(t, chart)
	}
	s.get(t, "/nowhere")
	for _, want := range []string{
		`proxy_requests_total{method="youtube.videos.list",outcome="served"} 1`,
		`proxy_requests_total{method="youtube.videos.list",outcome="denied"} 1`,
		`proxy_requests_total{method="",outcome="refused"} 1`,
		`proxy_units_total{bucket="default",method="youtube.videos.list"} 1`,
		`proxy_requests_in_flight 0`, `proxy_upstream_responses_total{code="200"} 1`,
		`proxy_upstream_duration_seconds_count{method="youtube.videos.list"} 1`,
	} {
		await(t, func() bool {
			return strings.Contains(admin.get(t, "/metrics").body, "\n"+want+"\n")
		})
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := admin.get(t, path); a.status != 200 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	s.Ledger.Close()
	if a := admin.get(t, "/readyz"); a.status != 503 || a.body == "" {
		t.Errorf("without a ledger: %d %s", a.status, a.body)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestUnixSocket: only its user can connect. A stale socket is replaced, but not one that answers,
// nor another file.
func TestUnixSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "proxy.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	left.SetUnlinkOnClose(false)
	left.Close()
	s := open(t, units(10))
	serve(t, s.proxy, "unix:"+path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	transport := &http.Transport{DialContext: dial}
	defer transport.CloseIdleConnections()
	socket := &http.Client{Transport: transport}
	for host, want := range map[string]int{"localhost": 200, "evil.example": 403} {
		if a := (front{URL: "http://" + host, client: socket}).get(t, chart); a.status != want {
			t.Errorf("Host %s: %d", host, a.status)
		}
	}
	s.Counted(t, 1, 1)
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for address, want := range map[string]string{
		"unix:" + path: "address already in use", "unix:" + file: "is not a socket",
		"unix:": "has no path",
	} {
		if l, err := proxy.Listen(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v", address, l, err)
		}
	}
}

// TestExposed: only loopback and a socket are for this machine alone.
func TestExposed(t *testing.T) {
	for ip, want := range map[string]bool{
		"127.0.0.1": false, "127.8.0.1": false, "::1": false, "0.0.0.0": true, "::": true,
		"192.0.2.7": true,
	} {
		if got := proxy.Exposed(&net.TCPAddr{IP: net.ParseIP(ip), Port: 8090}); got != want {
			t.Errorf("%s: %v", ip, got)
		}
	}
	if proxy.Exposed(&net.UnixAddr{Name: "a", Net: "unix"}) {
		t.Error("a socket")
	}
}
