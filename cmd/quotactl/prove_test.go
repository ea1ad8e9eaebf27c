package main

import (
	"strings"
	"testing"

	"quotabudget/internal/ledger/redistest"
)

func TestProveOnRedis(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	code, stdout, stderr := call(t, []string{"prove", "retry", "--on", "redis"},
		"QUOTA_LEDGER", server.URL())
	if code != 0 || !strings.Contains(stdout, "every promise was kept") || stderr != "" {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
}
