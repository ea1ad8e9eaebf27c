package bill

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

func pacific(t *testing.T) quota.Window {
	t.Helper()
	w, err := quota.ParseWindow("day", "America/Los_Angeles")
	must(t, err)
	return w
}

// TestDays: the days are the upstream's, even when clocks change, and end where its meter can be
// by now.
func TestDays(t *testing.T) {
	for _, c := range []struct {
		name, now string
		n         int
		lag       time.Duration
		want      string // begin, hours of the day, until, settled
	}{
		{"summer", "2026-06-02T12:00:30Z", 2, 15 * time.Minute,
			"06-01T07:00 24h to 06-02T07:00 settled; 06-02T07:00 24h to 06-02T11:45"},
		{"23 hours", "2026-03-09T12:00:00Z", 2, 15 * time.Minute,
			"03-08T08:00 23h to 03-09T07:00 settled; 03-09T07:00 24h to 03-09T11:45"},
		{"25 hours", "2026-11-02T12:00:00Z", 2, 15 * time.Minute,
			"11-01T07:00 25h to 11-02T08:00 settled; 11-02T08:00 24h to 11-02T11:45"},
		{"not settled", "2026-06-02T07:59:59Z", 2, 15 * time.Minute,
			"06-01T07:00 24h to 06-02T07:00; 06-02T07:00 24h to 06-02T07:44"},
		{"settled", "2026-06-02T08:00:00Z", 2, 15 * time.Minute,
			"06-01T07:00 24h to 06-02T07:00 settled; 06-02T07:00 24h to 06-02T07:45"},
		{"today is too young", "2026-06-02T07:10:00Z", 2, 15 * time.Minute,
			"06-01T07:00 24h to 06-02T06:55"},
		{"its first minute", "2026-06-02T07:16:00Z", 1, 15 * time.Minute,
			"06-02T07:00 24h to 06-02T07:01"},
		{"a meter that is never late", "2026-06-02T07:00:00Z", 2, 0,
			"06-01T07:00 24h to 06-02T07:00 settled"},
		{"whole days alone", "2026-06-04T06:59:59Z", 3, 0,
			"06-01T07:00 24h to 06-02T07:00 settled; 06-02T07:00 24h to 06-03T07:00 settled; " +
				"06-03T07:00 24h to 06-04T06:59"},
		{"no part of a day", "2026-11-03T07:59:59Z", 3, 0,
			"11-01T07:00 25h to 11-02T08:00 settled; 11-02T08:00 24h to 11-03T07:59"},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		must(t, err)
		var got []string
		for _, d := range Days(pacific(t), now, c.n, c.lag, 72*time.Hour, true) {
			text := fmt.Sprintf("%s %.0fh to %s", d.Begin.UTC().Format("01-02T15:04"),
				d.End.Sub(d.Begin).Hours(), d.Until.UTC().Format("01-02T15:04"))
			if d.Settled {
				text += " settled"
			}
			got = append(got, text)
		}
		if all := strings.Join(got, "; "); all != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, all, c.want)
		}
	}
}

// TestSpan: every entry is in exactly one of two consecutive days.
func TestSpan(t *testing.T) {
	now := time.Date(2026, 6, 2, 12, 0, 0, 0, time.UTC)
	days := Days(pacific(t), now, 2, 0, 72*time.Hour, true)
	_, until := days[0].Span()
	after, _ := days[1].Span()
	if !until.Equal(after) || !after.Equal(days[1].Begin.Add(-time.Microsecond)) {
		t.Errorf("one ends with %s, the next begins after %s", until, after)
	}
}

// TestJudge: a smaller count is trusted on a settled day only, and never if the meter reports
// nothing.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		settled      bool
		ours, theirs int64
		known        bool
		want         Verdict
		correction   int64
		slack        int64
	}{
		{true, 100, 100, true, Agrees, 0, 0}, {false, 100, 100, true, Agrees, 0, 0},
		{true, 100, 120, true, More, 20, 0}, {false, 100, 120, true, More, 20, 0},
		{true, 0, 20, true, More, 20, 0},
		{true, 100, 70, true, Less, -30, 0}, {false, 100, 70, true, Waiting, 0, 0},
		{true, 100, 0, true, Less, -100, 0},
		{true, 100, 0, false, Unknown, 0, 0}, {false, 100, 0, false, Waiting, 0, 0},
		{true, 100, 70, true, Agrees, 0, 30}, {true, 100, 69, true, Less, -31, 30},
		{true, 100, 0, false, Unknown, 0, 100}, {false, 100, 120, true, More, 20, 30},
		{true, 0, 0, false, Agrees, 0, 0}, {false, 0, 0, false, Agrees, 0, 0},
	} {
		v, correction := Day{Settled: c.settled}.Judge(c.ours, c.theirs, c.known, c.slack)
		if v != c.want || correction != c.correction {
			t.Errorf("%+v: %s, %d", c, v, correction)
		}
	}
}
