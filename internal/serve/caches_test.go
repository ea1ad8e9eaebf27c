package serve

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/limit"
)

const nginxConf = `
pid %[1]s/pid; error_log %[1]s/error.log; user root;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
  proxy_cache_path %[1]s/cache keys_zone=all:1m;
  server {
    listen unix:%[1]s/socket;
    location / {
      proxy_pass %[2]s; proxy_cache all; proxy_cache_valid any 1m; proxy_cache_methods GET HEAD POST;
      add_header X-Cache $upstream_cache_status always;
    }
  }
}
`

// nginx starts a caching nginx in front of a server and returns a function that sends requests
// through it. The cache keeps every response that does not forbid it, and ignores Authorization.
func nginx(t *testing.T, url string) *http.Client {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx" // not in every user's PATH
	}
	dir, err := os.MkdirTemp("", "nginx") // a socket's path must be short
	must(t, err)
	conf := fmt.Sprintf(nginxConf, dir, url)
	if os.Geteuid() != 0 {
		conf = strings.Replace(conf, "user root;", "", 1)
	}
	must(t, os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o600))
	run := func(arguments ...string) {
		t.Helper()
		all := append([]string{"-c", filepath.Join(dir, "conf")}, arguments...)
		if out, err := exec.Command(program, all...).CombinedOutput(); err != nil {
			t.Fatalf("nginx (scripts/install-test-tools installs it): %v\n%s", err, out)
		}
	}
	run() // it returns once nginx listens
	t.Cleanup(func() {
		run("-s", "stop")
		must(t, os.RemoveAll(dir))
	})
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "socket"))
		}}}
}

// A cache in front of a public server never serves private responses to clients without a token.
func TestSharedCachesKeepNothingPrivate(t *testing.T) {
	t.Parallel()
	s := newEnv(t, func(s *Server) {
		s.Public, s.Tokens = true, tokens(t, "a-secret-token-0")
		guarded(limit.Rule{Policy: perHour("rlaas", 1000), By: limit.ByDecision})(s)
	})
	s.fill("US", time.Now().Add(-time.Hour), "v1")
	client := nginx(t, s.url)
	ask := func(method, path, body, token string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
		must(t, err)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(r)
		must(t, err)
		must(t, answer.Body.Close())
		return answer
	}
	if ask("GET", "/v1/regions", "", ""); ask("GET", "/v1/regions", "", "").
		Header.Get("X-Cache") != "HIT" {
		t.Fatal("nginx caches nothing: what follows would show nothing")
	}
	decide := `{"policy":"rlaas","key":"a"}`
	for _, test := range []struct{ method, path, body string }{
		{"GET", "/v1/budgets", ""}, {"GET", "/v1/forecast", ""}, {"GET", "/v1/plan?days=1", ""},
		{"GET", "/v1/log?by=job", ""}, {"GET", "/v1/log/entries", ""},
		{"GET", "/v1/log?by=color", ""}, {"GET", "/v1/log?bucket=none", ""}, {"GET", "/metrics", ""},
		{"GET", "/", ""}, {"GET", "/log", ""}, {"GET", "/plan", ""}, {"GET", "/charts/US", ""},
		{"GET", "/none", ""}, {"GET", "/readyz", ""},
		{"POST", "/v1/decisions", decide},
	} {
		for _, token := range []string{"a-secret-token-0", ""} { // each would find the response cached for the other
			r := ask(test.method, test.path, test.body, token)
			if hit := r.Header.Get("X-Cache"); hit != "MISS" {
				t.Errorf("%s %s with token %q: %s", test.method, test.path, token, hit)
			}
			private := r.Header.Get("Cache-Control") == "private, no-store"
			if (token != "" && !private) ||
				!slices.Contains(r.Header.Values("Vary"), "Authorization") {
				t.Errorf("%s %s with token %q: Cache-Control %q, Vary %q", test.method, test.path,
					token, r.Header.Get("Cache-Control"), r.Header.Values("Vary"))
			}
		}
	}
}
