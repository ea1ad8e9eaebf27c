package words

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

// TestTime: a time in any zone is written in UTC, and its JSON keeps it to the microsecond.
func TestTime(t *testing.T) {
	for want, at := range map[string]time.Time{
		`null`:                          {},
		`"1970-01-01T00:00:00.000001Z"`: time.UnixMicro(1),
		`"2026-11-21T13:02:11.120000Z"`: time.Date(2026, 11, 21, 14, 2, 11, 120_000_000,
			time.FixedZone("", 3600)),
		`"2026-07-01T09:00:00.000000Z"`: time.Date(2026, 7, 1, 2, 0, 0, 0,
			time.FixedZone("", -7*3600)),
	} {
		text, err := json.Marshal(Time(at))
		if err != nil || string(text) != want {
			t.Errorf("%v: %s, %v, want %s", at, text, err, want)
		}
		var got Time
		if err := json.Unmarshal(text, &got); err != nil || !time.Time(got).Equal(at) {
			t.Errorf("%s is read as %v, %v", text, time.Time(got), err)
		}
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
		if got := Seconds(c.d); got != c.seconds {
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

func TestNumbers(t *testing.T) {
	for n, want := range map[int64][2]string{
		0: {"0", "0"}, 999: {"999", "999"}, 1000: {"1,000", "1k"}, 12_345: {"12,345", "12.3k"},
		999_499: {"999,499", "999k"}, 999_999: {"999,999", "1M"}, 1_234_567: {"1,234,567", "1.23M"},
		-4321: {"-4,321", "-4.32k"}, 5_600_000_000: {"5,600,000,000", "5.6B"},
		math.MaxInt64: {"9,223,372,036,854,775,807", "9223372037B"},
		math.MinInt64: {"-9,223,372,036,854,775,808", "-9223372037B"},
	} {
		if got := [2]string{Count(n), Short(n)}; got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 pages", 1: "1 page", 1200: "1,200 pages"} {
		if got := Plural(n, "page"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for sum, want := range map[int64]string{22: "3.143", 21: "3", 864_200: "123457", 6997: "999.6"} {
		if got := Mean(sum, 7); got != want {
			t.Errorf("%d of 7: %q, want %q", sum, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[31mb\r\n":                  "a�[31mb  ",
		"\u009b2Jx\u0085y":                "�2Jx y",
		"\u202egnp.exe\u202c":             "gnp.exe",
		"\u2067a\u2069\u200e\u200f\u061c": "a",
		"one\u2028two\u2029three":         "one two three",
		"zero\u200bwidth\ufeff":           "zerowidth",
		"back\u200dfill":                  "backfill",
		"bad\xffbyte":                     "bad�byte",
		"👩‍👩‍👧 👍🏽 ❤️ 🇩🇪 1️⃣":                  "👩‍👩‍👧 👍🏽 ❤️ 🇩🇪 1️⃣",
		"🏴\U000e0067\U000e0062\U000e007f win": "🏴\U000e0067\U000e0062\U000e007f win",
		"x\U000e0067y":                        "xy",
		"שלום עולם سلام می\u200cخواهم":        "שלום עולם سلام می\u200cخواهم",
		"नमस्ते e\u0301 ไทย 東京　한국":            "नमस्ते e\u0301 ไทย 東京　한국",
		"nb\u00a0sp \u0600":                   "nb\u00a0sp \u0600",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"youtube.videos.list", "youtube.videos.rate", "default", "search_list",
		"GB", "spend"}
	for word, want := range map[string]string{
		"videos.list": "youtube.videos.list", "youtube.video.list": "youtube.videos.list",
		"youtube.videos.lsit": "youtube.videos.list",
		"defualt":             "default", "DEFAULT": "default",
		"serch_list": "search_list", "spned": "spend",
		"gb": "GB",
		"":   "", "x": "", "zz": "", "nothing like it": "", strings.Repeat("default", 100): "",
	} {
		got := DidYouMean(word, known)
		if want != "" {
			want = " (did you mean " + want + "?)"
		}
		if got != want {
			t.Errorf("%.20q: %q, want %q", word, got, want)
		}
	}
	if got := DidYouMean("default", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

// FuzzParseSpan looks for a duration that is not the sum of its parts, or changes when it is
// formatted and parsed.
func FuzzParseSpan(f *testing.F) {
	for _, text := range []string{"7d", "1d12h", "90s", "0", "-1h", "1.5d", "-1d", "1d-1h", "d",
		"1dd", "1d2562047h", "416d", "417d", "1e3d", "+1d", "1d ", "µs", "1hd"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseSpan(text)
		if err != nil {
			return
		}
		if back, err := ParseSpan(d.String()); err != nil || back != d {
			t.Errorf("%q is %s, and that %s, %v", text, d, back, err)
		}
		if d < 0 && !strings.Contains(text, "-") {
			t.Errorf("%q is %s", text, d)
		}
		if days, rest, ok := strings.Cut(text, "d"); ok && strings.Trim(days, "0123456789") == "" {
			whole, err := time.ParseDuration(days + "h")
			more, _ := time.ParseDuration(rest)
			if err != nil || d != 24*whole+more {
				t.Errorf("%q is %s", text, d)
			}
		}
		if text := Span(d); text == "" || d > 0 && (text == "0s" || strings.Contains(text, "-")) {
			t.Errorf("%s is for people %q", d, text)
		}
	})
}

// FuzzTime looks for a time that is formatted as another.
func FuzzTime(f *testing.F) {
	for _, unix := range []int64{0, -1, 1_795_000_000, 253_402_300_799, -62_135_596_800} {
		f.Add(unix, int64(999_999_999))
		f.Add(unix, int64(1000))
	}
	f.Fuzz(func(t *testing.T, unix, nano int64) {
		const year10000 = 253_402_300_800
		at := time.Unix(unix%year10000, nano%1e9)
		if at.Year() < 0 || at.Year() > 9999 || at.IsZero() {
			return
		}
		back, err := time.Parse(time.RFC3339Nano, Time(at).String())
		if err != nil || !back.Equal(at.Truncate(time.Microsecond)) {
			t.Errorf("%s is written as %s, %v", at, Time(at), err)
		}
		if at.Year() == 9999 {
			return // the next second may be in the year 10000
		}
		shown, err := time.Parse("2006-01-02 15:04:05Z", Moment(at))
		if err != nil || shown.Before(at) || !shown.Before(at.Add(time.Second)) {
			t.Errorf("%s is for people %s, %v", at, Moment(at), err)
		}
	})
}
