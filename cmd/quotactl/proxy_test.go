package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"quotabudget/internal/standin"
)

// A program without knowledge of quotas spends through the proxy: two units are left, and the third
// request is not sent. A --host name without tokens causes a warning.
func TestProxy(t *testing.T) {
	standin := &standin.YouTube{Keys: []string{"right"}}
	upstream := httptest.NewServer(standin)
	defer upstream.Close()
	env := map[string]string{
		"QUOTA_CONFIG": "testdata/two.yaml", "QUOTA_STATE_DIR": t.TempDir(),
		"YOUTUBE_ENDPOINT": upstream.URL, "KEY": "right",
	}
	getenv := func(name string) string { return env[name] }
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int)
	var stderr bytes.Buffer
	args := []string{"proxy", "--listen", "127.0.0.1:0", "--host", "gate.lan"}
	go func() { code <- run(ctx, args, in, &stderr, getenv) }()
	line := make([]byte, 100)
	n, err := out.Read(line)
	must(t, err)
	base := strings.TrimSpace(string(line[:n]))
	statuses := []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests}
	for i, want := range statuses {
		resp, err := http.Get(base +
			"youtube/v3/videos?part=snippet&chart=mostPopular&regionCode=US&key=AnotherKey")
		must(t, err)
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("request %d: %d, want %d: %s", i+1, resp.StatusCode, want, body)
		}
		var problem struct{ Limit string }
		if want != http.StatusOK && (json.Unmarshal(body, &problem) != nil ||
			problem.Limit != "default 24h" || resp.Header.Get("Retry-After") == "") {
			t.Errorf("denial %s, headers %v", body, resp.Header)
		}
	}
	if c := standin.Counts(); c.Requests != 2 || c.KeyInURL != 0 {
		t.Errorf("the stand-in saw %+v, want 2 requests without a key in the URL", c)
	}
	stop()
	if c := <-code; c != 0 || !strings.Contains(stderr.String(), "web pages may spend quota") {
		t.Errorf("exit code %d: %s", c, stderr.String())
	}
}
