package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
	dir := t.TempDir()
	env := []string{"HOME=" + dir, "QUOTA_STATE_DIR=" + dir,
		"QUOTA_CONFIG=" + filepath.Join(dir, "quota.yaml"), "YK=ykey", "AK=akey"}
	claude := process(t, env, "standin", "anthropic", "--listen", "127.0.0.1:0", "--key", "akey")
	youtube := process(t, env, "standin", "youtube", "--listen", "127.0.0.1:0", "--key", "ykey")
	must(t, os.WriteFile(filepath.Join(dir, "quota.yaml"), []byte(`
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
`), 0o600))
	base := process(t, env, "proxy", "--listen", "127.0.0.1:0", "--estimate",
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
		c := exec.Command("quotactl", "log", "--by", "method", "-o", "json", "--credential",
			credential)
		c.Env = append(os.Environ(), env...)
		out, err := c.Output()
		if err != nil || !strings.Contains(strings.ReplaceAll(string(out), " ", ""), want) {
			t.Errorf("log of %s: %s %v", credential, out, err)
		}
	}
}
