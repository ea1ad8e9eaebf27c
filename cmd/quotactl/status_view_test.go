package main

import (
	"strings"
	"testing"
	"time"

	"quotabudget/internal/cli"
)

// The narrower the terminal, the less is drawn: first without the bar, then without the headroom, then in short.
func TestStatusFitsTheTerminal(t *testing.T) {
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	zone := "America/Los_Angeles"
	list := statusList{[]credentialStatus{{Credential: "default", Mode: "enforce", at: now, Buckets: []bucketStatus{{
		Bucket: "video_batch_get_stats",
		Limits: []limitStatus{{"day", &zone, 10000, 500, 31, 9469, cli.Time(now.Add(18*time.Hour + 3*time.Minute))}},
	}}}}}
	for _, c := range []struct {
		width          int
		bar, head, day string // "" where it is not to be seen
	}{
		{0, "█", "HEADROOM", zone},
		{160, "█", "HEADROOM", zone},
		{140, "", "HEADROOM", zone},
		{130, "", "", zone},
		{80, "", "", ""},
	} {
		var out strings.Builder
		s := cli.Screen{W: &out, Bars: true, Width: c.width}
		if err := drawStatus(s, list); err != nil {
			t.Fatal(err)
		}
		for mark, want := range map[string]string{"█": c.bar, "HEADROOM": c.head, zone: c.day} {
			if strings.Contains(out.String(), mark) != (want != "") {
				t.Errorf("%d columns: %s\n%s", c.width, mark, out.String())
			}
		}
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimSpace(line))); c.width > 0 && n > c.width {
				t.Errorf("%d columns: a line of %d", c.width, n)
			}
		}
		if !strings.Contains(out.String(), "in 18h 3min") || !strings.Contains(out.String(), "9,469") {
			t.Errorf("%d columns:\n%s", c.width, out.String())
		}
	}
}
