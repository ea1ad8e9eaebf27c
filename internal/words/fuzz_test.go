package words

import (
	"strings"
	"testing"
	"time"
)

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
