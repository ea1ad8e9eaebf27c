package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
)

func series(limit int64, use ...int64) plan.Series {
	return plan.Series{Limit: quota.Limit{Bucket: "default", Units: limit,
		Window: quota.Sliding(24 * time.Hour)}, Cap: limit,
		Start: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Step: time.Hour, Use: use}
}

func TestPlanPicture(t *testing.T) {
	var rising []int64
	for i := range int64(400) {
		rising = append(rising, i/4)
	}
	text := pictureOf(series(200, rising...), pictureSize{Columns: 40, Rows: 4})
	for _, want := range []string{"200 ┼───", "  0 ┼", "default 24h: units used, of 200",
		"2026-06-01", "2026-06-17"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("coloured although it is not to be")
	}
	if got := pictureOf(series(0, 0, 0, 0), pictureSize{Columns: 10, Rows: 2}); got == "" {
		t.Error("nothing drawn of a limit of nothing")
	}
	if got := pictureOf(series(5), pictureSize{Columns: 10, Rows: 2}); got != "" {
		t.Errorf("%q", got)
	}
}

// TestTerminalShort: a plan with fewer steps than columns fills the picture too.
func TestPlanPictureShort(t *testing.T) {
	widths := make(map[string]int)
	for line := range strings.Lines(pictureOf(series(10, 5, 5, 5, 5, 5, 5),
		pictureSize{Columns: 40, Rows: 4})) {
		if label, drawn, ok := strings.Cut(line, "┼"); ok {
			widths[strings.TrimSpace(label)] = utf8.RuneCountInString(strings.TrimSpace(drawn))
		}
	}
	if widths["10"] < 39 || widths["5"] != widths["10"] {
		t.Errorf("the curve and the line of the limit are %v columns wide", widths)
	}
}
