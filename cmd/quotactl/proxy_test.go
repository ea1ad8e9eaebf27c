package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"quotabudget/internal/standin"
)

// process starts the program in its own process, and returns its first line. It is interrupted at
// the end of the test, and must then exit with 0.
func process(t *testing.T, env []string, args ...string) string {
	t.Helper()
	c := exec.Command("quotactl", args...)
	c.Env = append(os.Environ(), env...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	lines := bufio.NewScanner(out)
	first := lines.Scan()
	t.Cleanup(func() {
		c.Process.Signal(os.Interrupt)
		for lines.Scan() {
		}
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %v: %s", args, err, errs.String())
		}
	})
	if !first {
		t.Fatalf("%v: no line", args)
	}
	return lines.Text()
}

// TestProxyOfTwoUpstreams: one proxy in front of two stand-in processes. Each call goes to its
// upstream, with its key, and the ledger equals the bills of the stand-ins.
func TestProxyOfTwoUpstreams(t *testing.T) {
	claude := process(t, nil, "standin", "anthropic", "--listen", "127.0.0.1:0", "--key", "akey")
	youtube := process(t, nil, "standin", "youtube", "--listen", "127.0.0.1:0", "--key", "ykey")
	s := newShell(t, "", `
credentials:
  - {name: y1, api_key: {env: YK}}
  - name: a1
    upstream: anthropic
    api_key: {env: AK}
    limits: [{bucket: output, units: 900, window: 1h}]
  - {name: o1, upstream: openai, api_key: {env: NOT_SET}}
upstreams:
  anthropic: {endpoint: "`+claude+`"}
  youtube: {endpoint: "`+youtube+`"}
`)
	s.env = append(s.env, "YK=ykey", "AK=akey")
	base := process(t, s.env, "proxy", "--listen", "127.0.0.1:0", "--estimate",
		"anthropic.messages.create/output=300")
	ask := func(verb, path, host, body string) int {
		r, err := http.NewRequestWithContext(t.Context(), verb, base+path, strings.NewReader(body))
		must(t, err)
		r.Header.Set("Anthropic-Version", "2023-06-01")
		r.Header.Set("X-Api-Key", "sk-own")
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		must(t, err)
		return resp.StatusCode
	}
	const question = `{"model":"claude-sonnet-4-5","max_tokens":8000,"stream":true,"messages":` +
		`[{"role":"user","content":"hello [[output:400]]"}]}`
	const regions = "youtube/v3/i18nRegions?part=snippet"
	for i, c := range []struct {
		verb, path, host, body string
		want                   int
	}{
		{"POST", "anthropic/v1/messages", "", question, 200},
		{"GET", regions, "", "", 200},
		{"POST", "v1/messages", "api.anthropic.com", question, 200},
		{"GET", regions, "", "", 200},
		{"POST", "anthropic/v1/messages", "", question, 429}, // 800 of 900, and 300 to set aside
		{"POST", "openai/v1/responses", "", question, 404},   // has no key
	} {
		if got := ask(c.verb, c.path, c.host, c.body); got != c.want {
			t.Errorf("%d: %s %s: %d, want %d", i, c.verb, c.path, got, c.want)
		}
	}
	for at, want := range map[string]struct {
		bucket string
		units  int64
	}{claude: {"output/sonnet-4", 800}, youtube: {"default", 2}} {
		resp, err := http.Get(at + "standin/counts")
		must(t, err)
		var counts struct{ Units map[string]int64 }
		must(t, json.NewDecoder(resp.Body).Decode(&counts))
		resp.Body.Close()
		if counts.Units[want.bucket] != want.units {
			t.Errorf("counts %v, want %s: %d", counts.Units, want.bucket, want.units)
		}
	}
	for credential, want := range map[string]string{"a1": `"key":"anthropic.messages.create"`,
		"y1": `"key":"youtube.i18nRegions.list"`} {
		s.want(0, want, "log", "--by", "method", "-o", "json", "--credential", credential)
	}
}

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

// TestStandins: each stand-in listens, refuses calls without a credential, reports its counts
// without counting that request, and prints them at its end.
func TestStandins(t *testing.T) {
	home := func(name string) string { return map[string]string{"HOME": t.TempDir()}[name] }
	for _, name := range append(standin.Names(), youtubeName) {
		ctx, stop := context.WithCancel(t.Context())
		out, in := io.Pipe()
		code := make(chan int, 1)
		var errs bytes.Buffer
		go func() {
			code <- run(ctx, []string{"standin", name, "--listen", "127.0.0.1:0"}, in, &errs, home)
			in.Close()
		}()
		lines := bufio.NewScanner(out)
		if !lines.Scan() {
			t.Fatalf("%s: %d %s", name, <-code, errs.String())
		}
		for path, status := range map[string]int{"standin/counts": 200, "youtube/v3/videos": 401} {
			resp, err := http.Get(lines.Text() + path)
			must(t, err)
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			// here YouTube requires no key, and Slack refuses with 200
			refused := name == youtubeName || strings.Contains(string(body), "invalid_auth")
			if err != nil || resp.StatusCode != status && !refused ||
				status == 200 && !strings.Contains(string(body), `"units":`) {
				t.Errorf("%s %s: %d %s %v", name, path, resp.StatusCode, body, err)
			}
		}
		stop()
		if !lines.Scan() || !strings.Contains(lines.Text(), `"requests":1,`) || <-code != 0 {
			t.Errorf("%s: %q %s", name, lines.Text(), errs.String())
		}
	}
}
