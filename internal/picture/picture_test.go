package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
)

func series(limit int64, use ...int64) plan.Series {
	return plan.Series{Limit: quota.Limit{Bucket: "default", Units: limit, Window: quota.Sliding(24 * time.Hour)}, Cap: limit,
		Start: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Step: time.Hour, Use: use}
}

func TestTerminal(t *testing.T) {
	var rising []int64
	for i := range int64(400) {
		rising = append(rising, i/4)
	}
	text := Terminal(series(200, rising...), Size{Columns: 40, Rows: 4})
	for _, want := range []string{"200 ┼───", "  0 ┼", "default 24h: units used, of 200", "2026-06-01", "2026-06-17"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("coloured although it is not to be")
	}
	if got := Terminal(series(0, 0, 0, 0), Size{Columns: 10, Rows: 2}); got == "" {
		t.Error("nothing drawn of a limit of nothing")
	}
	if got := Terminal(series(5), Size{Columns: 10, Rows: 2}); got != "" {
		t.Errorf("%q", got)
	}
}

func TestShrink(t *testing.T) {
	if got := shrink([]int64{1, 9, 2, 3, 4}, 2); len(got) != 2 || got[0] != 9 || got[1] != 4 {
		t.Error(got)
	}
	if got := shrink([]int64{1, 2}, 5); len(got) != 2 || got[1] != 2 {
		t.Error(got)
	}
}

func TestSVG(t *testing.T) {
	var out bytes.Buffer
	lost := []time.Time{time.Date(2026, 6, 1, 2, 0, 0, 0, time.UTC)}
	if err := SVG(&out, []plan.Series{series(200, 1, 200, 3), series(0, 0, 0)}, lost); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !strings.Contains(text, "<svg ") || !strings.Contains(text, "default 24h, of 200") || !strings.Contains(text, "get less") {
		t.Errorf("%.300s", text)
	}
	for in := xml.NewDecoder(&out); ; {
		if _, err := in.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
