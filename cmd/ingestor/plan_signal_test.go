//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"quotabudget/internal/cli/clitest"
)

// manyTicks is a schedule whose plan of ten years takes longer than anybody waits.
const manyTicks = `
credentials:
  - name: key1
    api_key: {env: YOUTUBE_API_KEY}
    limits: [{bucket: default, units: 2000000000, window: day, timezone: America/Los_Angeles}]
ingest: {regions: [US, GB, DE, FR, IN, BR, AU, CA], schedule: "* * * * *", stagger: 0s, pages: 4}
`

// TestPlanEndsAtASignal: a long plan shows on a terminal how far it is, and the first signal ends
// it, and a search for a schedule too.
func TestPlanEndsAtASignal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "quota.yaml")
	must(t, os.WriteFile(file, []byte(manyTicks), 0o600))
	for shows, flags := range map[string][]string{
		"playing":    {"--days", "3660"},
		"suggesting": {"--days", "1", "--suggest", "--fail-over", "0.001%"},
	} {
		t.Run(shows, func(t *testing.T) {
			t.Parallel()
			watcher, screen := clitest.Terminal(t, 100)
			var out bytes.Buffer
			cmd := exec.CommandContext(t.Context(), "ingestor",
				append([]string{"plan", "--config", file, "--from", "2026-11-01"}, flags...)...)
			cmd.Env = testEnv("HOME="+t.TempDir(), "TERM=xterm")
			cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &out, screen
			must(t, cmd.Start())
			screen.Close()
			var seen []byte
			for buf := make([]byte, 4096); !bytes.Contains(seen, []byte(shows)); {
				n, err := watcher.Read(buf)
				if seen = append(seen, buf[:n]...); err != nil {
					t.Fatalf("ended without %s: %s", shows, seen)
				}
			}
			must(t, cmd.Process.Signal(syscall.SIGTERM))
			var rest bytes.Buffer
			rest.ReadFrom(watcher)
			cmd.Wait()
			if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(rest.String(),
				"interrupted before the plan was complete") || out.Len() > 0 {
				t.Errorf("%v: %s%s", cmd.ProcessState, rest.String(), out.String())
			}
		})
	}
}
