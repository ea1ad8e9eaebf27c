package quota

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func window(t testing.TB, text, zone string) Window {
	t.Helper()
	w, err := ParseWindow(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestParseWindow(t *testing.T) {
	for _, c := range []struct{ text, zone, want string }{
		{"24h", "", "24h"}, {"90m", "", "1h30m"}, {"1m", "", "1m"}, {"10m", "", "10m"},
		{"1h0m1s", "", "1h0m1s"}, {"1ms", "", "1ms"}, {"100s", "", "1m40s"}, {"20s", "", "20s"},
		{"8784h", "", "8784h"}, {"1000000ns", "", "1ms"}, {"day", "", "day UTC"},
		{"day", "America/Los_Angeles", "day America/Los_Angeles"},
		{"hour", "Asia/Kolkata", "hour Asia/Kolkata"}, {"minute", "", "minute UTC"},
		{"week", "Europe/Berlin", "week Europe/Berlin"}, {"month", "UTC", "month UTC"},
		{"anchored 1h", "", "anchored 1h"}, {"anchored 90m", "", "anchored 1h30m"},
		{"restoring 100/1s", "", "restoring 100/1s"}, {"restoring 100/s", "", "restoring 100/1s"},
		{"restoring 7/90m", "", "restoring 7/1h30m"}, {"concurrent", "", "concurrent"},
	} {
		w, err := ParseWindow(c.text, c.zone)
		if err != nil || w.String() != c.want {
			t.Errorf("%q %q: %s, %v, want %s", c.text, c.zone, w, err, c.want)
			continue
		}
		again, err := ParseWindow(w.Text(), w.ZoneName())
		if err != nil || again.String() != w.String() {
			t.Errorf("%s: %q %q is parsed as %s, %v", w, w.Text(), w.ZoneName(), again, err)
		}
	}
	for _, c := range []struct{ text, zone string }{
		{"", ""}, {"0", ""}, {"0s", ""}, {"-1h", ""}, {"999us", ""}, {"8785h", ""}, {"year", ""},
		{"24", ""}, {"1d", ""}, {"24h", "UTC"}, {"day", "Mars/Olympus"}, {"day", "Local"},
		{"day", "../etc/passwd"}, {"anchored", ""}, {"anchored day", ""}, {"anchored 1h", "UTC"},
		{"restoring", ""}, {"restoring 100", ""}, {"restoring 0/1s", ""}, {"restoring -1/s", ""},
		{"restoring 1.5/s", ""}, {"restoring 1/1us", ""}, {"restoring 1/9000h", ""},
		{"restoring 1/1s", "UTC"}, {"concurrent", "UTC"}, {"concurrent 5", ""}, {"sliding 1h", ""},
	} {
		if w, err := ParseWindow(c.text, c.zone); err == nil {
			t.Errorf("%q %q is read as %s", c.text, c.zone, w)
		}
	}
}

// The end of an anchored window moves only when the upstream reports a new window. Now is 12:00.
func TestNextReset(t *testing.T) {
	now := at(t, "2026-06-01T12:00:00Z")
	minutes := func(n int) int64 {
		if n == 0 {
			return 0
		}
		return now.Add(time.Duration(n) * time.Minute).UnixMicro()
	}
	for _, c := range []struct {
		what                  string
		known, reported, want int // minutes from now; 0 for none
	}{
		{"the first", 0, 30, 30},
		{"past", 30, -1, 30},
		{"none", 30, 0, 30},
		{"the same again", 30, 30, 30},
		{"a little later", 30, 31, 30},
		{"the end of a sliding window", 30, 60, 30},
		{"of the window before", 30, 10, 30},
		{"a new window", -5, 55, 55},
		{"a new window, by a clock that is a minute behind", -5, 54, 54},
		{"a window that is over", -5, 53, -5},
		{"a little more than a window away", -5, 61, 60},
		{"too far away", -5, 121, -5},
		{"too far away, and none is known", 0, 121, 0},
		{"after a long pause", -600, 20, 20},
	} {
		w := window(t, "anchored 1h", "")
		got := w.NextReset(minutes(c.known), minutes(c.reported), now.UnixMicro())
		if got != minutes(c.want) {
			t.Errorf("%s: %s, want %d minutes from now", c.what,
				time.UnixMicro(got).Sub(now), c.want)
		}
	}
	if got := window(t, "1h", "").NextReset(7, minutes(30), now.UnixMicro()); got != 7 {
		t.Errorf("a sliding window has an end: %d", got)
	}
}

func TestRate(t *testing.T) {
	for text, want := range map[string][2]int64{
		"100/1s": {1, 10_000}, "1/1m": {1, 60_000_000}, "7/3s": {7, 3_000_000},
		"1000000/1s": {1, 1}, "3000000/1s": {3, 1}, "1/8784h": {1, MaxWindow.Microseconds()},
	} {
		r := window(t, "restoring "+text, "").Restore
		if num, den := r.Terms(); num != want[0] || den != want[1] {
			t.Errorf("%s: %d units in %d µs, want %d", text, num, den, want)
		}
	}
	r := window(t, "restoring 7/3s", "").Restore // a level of 3,000,000 is a unit
	for micros, want := range map[int64]int64{
		0: 0, -5: 0, 1: 1, 428_571: 1, 428_572: 2, 3_000_000: 7, 3_000_001: 8,
		1 << 62: MaxUnits,
	} {
		if got := r.Restored(micros); got != want {
			t.Errorf("%d µs restore %d, want %d", micros, got, want)
		}
	}
	for micros, want := range map[int64]int64{
		0: 3_000_000, 1: 2_999_993, 428_571: 3, 428_572: 0, 1 << 62: 0,
	} {
		if got := r.LevelAfter(3_000_000, micros); got != want {
			t.Errorf("the level after %d µs is %d, want %d", micros, got, want)
		}
	}
}

// What cannot be counted exactly is refused.
func TestLimitCheck(t *testing.T) {
	for _, c := range []struct {
		window string
		units  int64
		sound  bool
	}{
		{"24h", MaxUnits, true}, {"restoring 100/1s", 1000, true},
		{"restoring 97/1h", 625_499, true}, {"restoring 97/1h", 625_500, false},
		{"restoring 1/1h", 8784, true}, {"restoring 1/1h", 8785, false}, // takes over 366 days
		{"restoring 1000/1ms", MaxUnits, true},
	} {
		err := Limit{Units: c.units, Window: window(t, c.window, "")}.Check()
		if (err == nil) != c.sound || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%d in %s: %v", c.units, c.window, err)
		}
	}
}

func TestRetentionFor(t *testing.T) {
	for windows, hours := range map[string]time.Duration{
		"": 72, "24h,day": 72, "48h": 72, "1m,168h": 192, "concurrent": 72, "week": 195,
		"month": 771, "anchored 100h": 124, "restoring 1/1s": 72,
	} {
		var limits []Limit
		for text := range strings.SplitSeq(windows, ",") {
			if text != "" {
				limits = append(limits, Limit{Units: 10, Window: window(t, text, "")})
			}
		}
		if got := RetentionFor(limits); got != hours*time.Hour {
			t.Errorf("%q: %s, want %d h", windows, got, hours)
		}
	}
}

func TestPaceLine(t *testing.T) {
	day := window(t, "day", "America/Los_Angeles")
	morning := make([]int64, 24)
	for h := 6; h < 12; h++ {
		morning[h] = 1
	}
	at := func(d, h, m int) time.Time { return time.Date(2026, 3, d, h, m, 0, 0, day.Zone) }
	for _, test := range []struct {
		name  string
		pace  Pace
		now   time.Time
		units int64
		want  int64
	}{
		{"even, at the reset", Pace{Slack: 500}, at(5, 0, 0), 9600, 500},
		{"even, at noon", Pace{Slack: 500}, at(5, 12, 0), 9600, 5300},
		{"even, late", Pace{Slack: 500}, at(5, 23, 30), 9600, 9600},
		{"even, no slack, an hour", Pace{}, at(5, 1, 0), 9600, 400},
		{"even, the day of 23 h, noon is 11 h in", Pace{}, at(8, 12, 0), 9200, 4400},
		{"morning, before it", Pace{Curve: morning}, at(5, 5, 0), 600, 0},
		{"morning, half way", Pace{Curve: morning}, at(5, 9, 0), 600, 300},
		{"morning, a quarter past seven", Pace{Curve: morning}, at(5, 7, 15), 600, 125},
		{"morning, after it", Pace{Curve: morning}, at(5, 12, 0), 600, 600},
	} {
		if got := test.pace.Line(test.units, day, test.now); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// At the moment When names, the line is there; a second before, it is not.
func TestPaceWhen(t *testing.T) {
	day := window(t, "day", "America/Los_Angeles")
	now := time.Date(2026, time.November, 1, 0, 30, 0, 0, day.Zone) // a day of 25 h
	pace := Pace{Slack: 100}
	for used := int64(200); used <= 9500; used += 100 {
		when := pace.When(9500, used, day, now)
		if pace.Line(9500, day, when) < used {
			t.Errorf("%d at %v: the line is at %d", used, when, pace.Line(9500, day, when))
		}
		before := when.Add(-time.Second)
		if before.After(now) && pace.Line(9500, day, before) >= used {
			t.Errorf("%d at %v: a second before would do", used, when)
		}
	}
	if got := (Pace{}).When(9500, 1, day, now); !got.Equal(now) {
		t.Errorf("what fits now: %v, want %v", got, now)
	}
}

// TestDeniedByPace: a pace's denial leaves units, so its text does not say exhausted, but errors.Is
// still finds ErrExhausted.
func TestDeniedByPace(t *testing.T) {
	at := time.Date(2026, time.June, 1, 12, 0, 0, 1000, time.UTC)
	for limit, want := range map[string]string{
		RunMax: "this call can take 1251 of money; the run has 600 left of its ceiling: ask for " +
			"less (a model: lower max_tokens), or raise --max",
		PaceName:      "held back by the pace, retry at 2026-06-01T12:00:01Z",
		"default 24h": "quota exhausted: default 24h, retry at 2026-06-01T12:00:01Z",
	} {
		err := &DeniedError{Decision{Limit: limit, RetryAt: at,
			Units: map[string]int64{"money": 1251}, Remaining: map[string]int64{"money": 600}}}
		if err.Error() != want || !errors.Is(err, ErrExhausted) {
			t.Errorf("%v", err)
		}
	}
}

// TestRatePlus: a level stays at its maximum, even if one charge could double it.
func TestRatePlus(t *testing.T) {
	r := window(t, "restoring 1/8.388608s", "").Restore
	if level := r.plus(maxLevel, MaxUnits); level != maxLevel {
		t.Error(level)
	}
}
