package cli

import (
	"encoding/json"
	"testing"
	"time"

	"quotabudget/internal/report"
)

func TestTime(t *testing.T) {
	at := time.Date(2026, 11, 21, 14, 2, 11, 120_000_000, time.FixedZone("", 3600))
	data, err := json.Marshal(map[string]Time{"a": Time(at), "b": {}})
	if want := `{"a":"2026-11-21T13:02:11.120000Z","b":null}`; err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
	for nanos, want := range map[int]string{0: "2026-11-21 14:02:11Z",
		1000: "2026-11-21 14:02:12Z"} {
		if got := Moment(time.Date(2026, 11, 21, 14, 2, 11, nanos, time.UTC)); got != want {
			t.Errorf("%d ns: %s", nanos, got)
		}
	}
	if Moment(time.Time{}) != "" || Time(time.Time{}).String() != "" {
		t.Error("no time is written as one")
	}
}

// TestRoundedUp: after the displayed wait, the time has come.
func TestRoundedUp(t *testing.T) {
	for _, c := range []struct {
		d       time.Duration
		seconds int64
		span    string
	}{
		{0, 0, "0s"},
		{time.Microsecond, 1, "1s"},
		{time.Second, 1, "1s"},
		{59*time.Second + 1, 60, "1min"},
		{61 * time.Second, 61, "1min 1s"},
		{20 * time.Hour, 72000, "20h"},
		{20*time.Hour + time.Second, 72001, "20h 1min"},
		{47*time.Hour + 59*time.Minute + time.Second, 172741, "2d"},
		{50 * time.Hour, 180000, "2d 2h"},
		{50*time.Hour + time.Minute, 180060, "2d 3h"},
	} {
		if got := report.Seconds(c.d); got != c.seconds {
			t.Errorf("%s: %d seconds", c.d, got)
		}
		if got := Span(c.d); got != c.span {
			t.Errorf("%s: %s", c.d, got)
		}
	}
}

func TestParseSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1h": time.Hour, "90s": 90 * time.Second, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour,
		"0.5d": 12 * time.Hour, "1h30m": 90 * time.Minute,
	} {
		if got, err := ParseSpan(text); got != want || err != nil {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "7", "x", "1hd", "1d2", "7dd", "99999999d", "1d-x"} {
		if got, err := ParseSpan(text); err == nil {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestScreen(t *testing.T) {
	plain, drawn := Screen{}, Screen{Bars: true}
	if plain.Number(1234567) != "1234567" || plain.Bar(1, 2, 4).Text != "" {
		t.Error("a plain screen is not plain")
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567",
		-123456: "-123,456"} {
		if got := drawn.Number(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	for _, c := range []struct {
		used, limit int64
		want        string
	}{{0, 100, "░░░░"}, {1, 100, "█░░░"}, {50, 100, "██░░"}, {99, 100, "███░"}, {100, 100, "████"},
		{300, 100, "████"}, {0, 0, "████"}} {
		if got := drawn.Bar(c.used, c.limit, 4).Text; got != c.want {
			t.Errorf("%d of %d: %s", c.used, c.limit, got)
		}
	}
}
