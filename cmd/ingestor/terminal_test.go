//go:build linux

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"quotabudget/internal/cli/clitest"
)

func TestProgressOnATerminal(t *testing.T) {
	_, env := holding(t, 0)
	for _, test := range []struct {
		name  string
		env   []string
		flags []string
		shows string
		hides string
	}{
		{"lines", []string{"TERM=xterm"}, nil, "GB: complete, 2 pages\r\n",
			"level=INFO"},
		{"no colour", []string{"TERM=xterm", "NO_COLOR=1"}, nil, "page 1 of 2", "[2m"},
		{"a ledger that is none", []string{"TERM=xterm", "QUOTA_LEDGER=sqlite:/dev/null/x"}, nil,
			"cannot be reached", "goroutine"},
		{"a dumb one", []string{"TERM=dumb"}, nil, "level=INFO", "page 1"},
		{"logs as JSON", []string{"TERM=xterm"}, []string{"--log-format", "json"},
			`"msg":"region done"`, "page 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "ingestor",
				append([]string{"once", "--region", "US,GB", "--pages", "2"}, test.flags...)...)
			cmd.Env = testEnv("HOME="+t.TempDir(), append(env, test.env...)...)
			cmd.Dir, cmd.Stderr = t.TempDir(), os.Stdout // the terminal
			text, _ := clitest.Seen(t, 120, cmd)
			if !strings.Contains(text, test.shows) || strings.Contains(text, test.hides) {
				t.Errorf("%q must be there, %q must not:\n%q", test.shows, test.hides, text)
			}
		})
	}
}
