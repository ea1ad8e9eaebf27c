package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProxyOfTwoCredentials: of two upstreams with two credentials each, one credential per
// upstream is chosen. Without a choice, or with two of one upstream, the proxy reports why it does
// not start. A --host name without tokens causes a warning.
func TestProxyOfTwoCredentials(t *testing.T) {
	dir := t.TempDir()
	keys := make(chan string, 10)
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("X-Api-Key") + r.Header.Get("Authorization")
	}))
	defer web.Close()
	file := filepath.Join(dir, "quota.yaml")
	must(t, os.WriteFile(file, []byte(`
credentials:
  - {name: o1, upstream: openai, api_key: {env: KEY1}}
  - {name: a1, upstream: anthropic, api_key: {env: KEY1}}
  - {name: o2, upstream: openai, api_key: {env: KEY2}}
  - {name: a2, upstream: anthropic, api_key: {env: KEY2}}
upstreams:
  anthropic: {endpoint: "`+web.URL+`"}
  openai: {endpoint: "`+web.URL+`"}
`), 0o600))
	env := map[string]string{"QUOTA_CONFIG": file, "QUOTA_STATE_DIR": dir, "KEY1": "one",
		"KEY2": "two"}
	getenv := func(name string) string { return env[name] }
	start := func(ctx context.Context, stdout io.Writer, names ...string) (int, string) {
		args := []string{"proxy", "--listen", "127.0.0.1:0", "--host", "gate.lan"}
		for _, name := range names {
			args = append(args, "--credential", name)
		}
		var stderr bytes.Buffer
		code := run(ctx, args, stdout, &stderr, getenv)
		return code, stderr.String()
	}
	for want, names := range map[string][]string{
		"openai has several credentials: o1 and o2":                       nil,
		"anthropic has several credentials: a1 and a2":                    {"o2"},
		"--credential: o1 and o2 are both of openai: choose one for each": {"o1", "o2"},
		`--credential: no credential "o3"; configured: o1, a1, o2, a2`:    {"o3"},
	} {
		code, stderr := start(t.Context(), io.Discard, names...)
		if code != 64 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d: %s", names, code, stderr)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int)
	go func() {
		code, stderr := start(ctx, in, "o1", "a2")
		if !strings.Contains(stderr, "web pages may spend quota") {
			t.Errorf("no warning: %s", stderr)
		}
		ended <- code
	}()
	line := make([]byte, 100)
	n, err := out.Read(line)
	must(t, err)
	for path, want := range map[string]string{"openai/v1/models": "Bearer one",
		"anthropic/v1/models": "two"} {
		resp, err := http.Get(strings.TrimSpace(string(line[:n])) + path)
		must(t, err)
		resp.Body.Close()
		if got := <-keys; resp.StatusCode != 200 || got != want {
			t.Errorf("%s: %d, with the key %s", path, resp.StatusCode, got)
		}
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
