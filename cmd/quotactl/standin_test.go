package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"quotabudget/internal/standin"
)

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
