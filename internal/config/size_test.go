package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"quotabudget/internal/grammar"
)

// lines is n lines by the format, which is given their numbers, after the head.
func lines(head, format string, n int) string {
	var b strings.Builder
	b.WriteString(head)
	for i := range n {
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}

// TestLargeFiles: a file as large as it may be is read about as fast as it is long. What grows with
// the square of it takes minutes.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	cfg := load(t, lines("credentials:\n- name: default\n  limits:\n",
		"  - {bucket: default, units: 1, window: %dms}\n", 20_000))
	if n := len(cfg.Credentials[0].Limits); n != 20_000 {
		t.Errorf("%d limits", n)
	}
	cfg = load(t, lines("ingest: {credential: c1}\ncredentials:\n", "- {name: c%d}\n", 20_000))
	if n := len(cfg.Credentials); n != 20_000 {
		t.Errorf("%d credentials", n)
	}
}

// TestManyProblems: of many problems the first are reported, and the rest is not read.
func TestManyProblems(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"jobs":           lines("ingest:\n  jobs:\n", "  - {name: j%d, regions: [US]}\n", 10_000),
		"jobs of a name": lines("ingest:\n  jobs:\n", "  - {name: j, pages: %d}\n", 10_000),
		"limits": lines("credentials:\n- name: a\n  limits:\n",
			"  - {bucket: default, units: %d, window: 1h}\n", 10_000),
		"buckets": lines("credentials:\n- name: a\n  limits:\n",
			"  - {bucket: defualt%d, units: 1, window: 1h}\n", 10_000),
		"methods": lines("credentials:\n- name: a\n  when_unreachable:\n    open:\n",
			"    - youtube.video.list%d\n", 10_000),
		"keys":    lines("ledger: sqlite:a\n", "key%d: 1\n", 10_000),
		"regions": lines("ingest:\n  regions:\n", "  - x%d\n", 10_000),
		"aliases": lines("credentials:\n- name: a0\n  limits: &l\n",
			"  - {bucket: default, units: 1, window: %dms}\n", 10_000) +
			lines("", "- {name: a%d, limits: *l}\n", 10_000),
	} {
		_, err := Load(t.Context(), write(t, text), env("HOME", "/h"))
		var problem *Error
		if !errors.As(err, &problem) || len(problem.Problems) > grammar.MaxProblems+2 {
			t.Errorf("%s: %.200v", name, err)
			continue
		}
		if last := problem.Problems[len(problem.Problems)-1].Text; name == "aliases" &&
			!strings.Contains(last, "more than 200000 items") ||
			name != "aliases" && last != "and more: only the first 100 problems are listed" {
			t.Errorf("%s: %s", name, last)
		}
	}
}
