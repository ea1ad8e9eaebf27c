package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// TestProxyKilled: the most that a call may take is charged when its proxy is killed while the
// answer streams, however little was set aside.
func TestProxyKilled(t *testing.T) {
	t.Parallel()
	s, err := standin.New("openai")
	must(t, err)
	s.Pace = 50 * time.Millisecond
	upstream := httptest.NewServer(s)
	t.Cleanup(upstream.Close)
	dir := t.TempDir()
	list, err := os.ReadFile("../../costs/openai.yaml")
	must(t, err)
	write := func(name, text string) {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("openai.yaml", strings.ReplaceAll(string(list), "ttl: 15m", "ttl: 2s"))
	write("costs.yaml", "default: openai\nupstreams: {openai: openai.yaml}\n")
	write("quota.yaml", fmt.Sprintf(`costs: costs.yaml
credentials:
  - name: chat
    upstream: openai
    api_key: {env: KEY}
    limits: [{bucket: tokens, units: 100000, window: 1m}]
upstreams: {openai: {endpoint: %s/}}
`, upstream.URL))
	proxy := exec.Command("quotactl", "proxy", "--listen", "127.0.0.1:0",
		"--estimate", "openai.chat.completions.create/tokens=50")
	proxy.Env = append(os.Environ(), "QUOTA_CONFIG="+filepath.Join(dir, "quota.yaml"), "KEY=any",
		"QUOTA_LEDGER=sqlite://"+filepath.Join(dir, "ledger.db"), "QUOTA_STATE_DIR="+dir)
	var stderr strings.Builder
	proxy.Stderr = &stderr
	out, err := proxy.StdoutPipe()
	must(t, err)
	must(t, proxy.Start())
	t.Cleanup(func() { proxy.Process.Kill() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	resp, err := http.Post(strings.TrimSpace(address)+"openai/v1/chat/completions",
		"application/json", strings.NewReader(`{"model":"a","max_tokens":300,"stream":true,
			"messages":[{"role":"user","content":"[[output:250]]"}]}`))
	must(t, err)
	defer resp.Body.Close()
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d %v", resp.StatusCode, err)
	}
	l, err := ledger.OpenFile(t.Context(), filepath.Join(dir, "ledger.db"))
	must(t, err)
	defer l.Close()
	holds, err := l.Reservations(t.Context(), "chat", "tokens/a")
	must(t, err)
	must(t, proxy.Process.Kill())
	proxy.Wait()
	if len(holds) != 1 || holds[0].Left != 50 || holds[0].Most < 300 ||
		holds[0].Lapse != quota.LapseCharge {
		t.Fatalf("held %+v: %s", holds, stderr.String())
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		entries, err := l.Entries(t.Context(), quota.Query{Credential: "chat", Bucket: "tokens/a"})
		must(t, err)
		if len(entries) == 1 {
			if e := entries[0]; e.Units != holds[0].Most ||
				e.Labels[quota.LabelMethod] != "openai.chat.completions.create" {
				t.Errorf("it lapsed into %+v", e)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it never lapsed: %v", entries)
		}
	}
}
