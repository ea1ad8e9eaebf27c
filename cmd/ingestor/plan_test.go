package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// interrupted is a context that ends after many calls of Err.
type interrupted struct {
	context.Context
	asked atomic.Int64
}

func (c *interrupted) Err() error {
	if c.asked.Add(1) > 10_000 {
		return context.Canceled
	}
	return nil
}

// TestPlanInterrupted: an interrupted plan prints no part of it.
func TestPlanInterrupted(t *testing.T) {
	t.Parallel()
	file := configFile(t, `
credentials:
  - name: key1
    limits: [{bucket: default, units: 2000000000, window: day, timezone: America/Los_Angeles}]
ingest: {schedule: "* * * * *", stagger: 0s}
`)
	home := t.TempDir()
	getenv := func(name string) string { return map[string]string{"HOME": home}[name] }
	for _, flags := range []string{"--days 3660", "--days 1 --suggest --fail-over 0.001%"} {
		var out, errs bytes.Buffer
		code := run(&interrupted{Context: t.Context()}, strings.Fields("plan --from 2026-11-01 --config "+
			file+" "+flags), &out, &errs, getenv)
		if code != 1 || out.Len() > 0 ||
			!strings.Contains(errs.String(), "interrupted before the plan was complete") {
			t.Errorf("%s: %d %s%s", flags, code, out.String(), errs.String())
		}
	}
	if _, err := os.Stat(home + "/.local"); err == nil {
		t.Error("a plan made files")
	}
}
