package quota

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
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

func TestBounds(t *testing.T) {
	for text, table := range map[string]string{"day": boundsOfDays, "hour": boundsOfHours} {
		for line := range strings.Lines(table) {
			c := strings.Fields(line) // zone, now, start and end
			if len(c) == 0 || c[0] == "#" {
				continue
			}
			start, end := window(t, text, c[0]).Bounds(at(t, c[1]))
			if !start.Equal(at(t, c[2])) || !end.Equal(at(t, c[3])) {
				t.Errorf("%s in %s at %s: %s to %s, want %s to %s", text, c[0], c[1],
					start.UTC(), end.UTC(), c[2], c[3])
			}
		}
	}
}

const boundsOfDays = `
UTC 2026-06-01T12:00:00Z 2026-06-01T00:00:00Z 2026-06-02T00:00:00Z
UTC 2026-06-01T00:00:00Z 2026-06-01T00:00:00Z 2026-06-02T00:00:00Z
UTC 2026-06-01T23:59:59.999999999Z 2026-06-01T00:00:00Z 2026-06-02T00:00:00Z
UTC 2027-12-31T23:00:00Z 2027-12-31T00:00:00Z 2028-01-01T00:00:00Z
# 23 hours and 25 hours on the Pacific coast.
America/Los_Angeles 2026-03-08T07:59:59.999999Z 2026-03-07T08:00:00Z 2026-03-08T08:00:00Z
America/Los_Angeles 2026-03-08T08:00:00Z 2026-03-08T08:00:00Z 2026-03-09T07:00:00Z
America/Los_Angeles 2026-03-09T06:59:59.999999Z 2026-03-08T08:00:00Z 2026-03-09T07:00:00Z
America/Los_Angeles 2026-11-01T06:59:59.999999Z 2026-10-31T07:00:00Z 2026-11-01T07:00:00Z
America/Los_Angeles 2026-11-01T09:30:00Z 2026-11-01T07:00:00Z 2026-11-02T08:00:00Z
America/Los_Angeles 2026-11-02T07:59:59.999999Z 2026-11-01T07:00:00Z 2026-11-02T08:00:00Z
Europe/Berlin 2026-03-29T12:00:00Z 2026-03-28T23:00:00Z 2026-03-29T22:00:00Z
Europe/Berlin 2026-10-25T12:00:00Z 2026-10-24T22:00:00Z 2026-10-25T23:00:00Z
# Midnight is skipped: the day begins at one.
America/Sao_Paulo 2018-11-04T02:59:59Z 2018-11-03T03:00:00Z 2018-11-04T03:00:00Z
America/Sao_Paulo 2018-11-04T03:00:00Z 2018-11-04T03:00:00Z 2018-11-05T02:00:00Z
Africa/Cairo 2026-04-24T10:00:00Z 2026-04-23T22:00:00Z 2026-04-24T21:00:00Z
Asia/Beirut 2026-03-29T10:00:00Z 2026-03-28T22:00:00Z 2026-03-29T21:00:00Z
# At midnight the clock goes back to eleven: the day before has 25 hours.
America/Sao_Paulo 2018-02-18T02:30:00Z 2018-02-17T02:00:00Z 2018-02-18T03:00:00Z
Africa/Cairo 2026-10-29T21:30:00Z 2026-10-28T21:00:00Z 2026-10-29T22:00:00Z
# At one the clock goes back to midnight: the day begins at the first of the two.
America/Havana 2026-11-01T05:30:00Z 2026-11-01T04:00:00Z 2026-11-02T05:00:00Z
# A minute past midnight the clock goes back across it: the day changes once, at the second
# midnight.
America/St_Johns 2010-11-07T02:29:59Z 2010-11-06T02:30:00Z 2010-11-07T03:30:00Z
America/St_Johns 2010-11-07T02:30:30Z 2010-11-06T02:30:00Z 2010-11-07T03:30:00Z
America/St_Johns 2010-11-07T03:00:00Z 2010-11-06T02:30:00Z 2010-11-07T03:30:00Z
America/St_Johns 2010-11-07T12:00:00Z 2010-11-07T03:30:00Z 2010-11-08T03:30:00Z
# The last day of a leap year beyond the tables of a zone.
America/Los_Angeles 2040-12-31T12:00:00Z 2040-12-31T08:00:00Z 2041-01-01T08:00:00Z
Asia/Kolkata 2026-06-01T18:29:59Z 2026-05-31T18:30:00Z 2026-06-01T18:30:00Z
Asia/Kathmandu 2026-06-01T18:15:00Z 2026-06-01T18:15:00Z 2026-06-02T18:15:00Z
Australia/Lord_Howe 2026-04-04T20:00:00Z 2026-04-04T13:00:00Z 2026-04-05T13:30:00Z
Pacific/Kiritimati 2026-06-01T09:59:59Z 2026-05-31T10:00:00Z 2026-06-01T10:00:00Z
# Samoa had no 30 December 2011.
Pacific/Apia 2011-12-30T09:59:59Z 2011-12-29T10:00:00Z 2011-12-30T10:00:00Z
Pacific/Apia 2011-12-30T10:00:00Z 2011-12-30T10:00:00Z 2011-12-31T10:00:00Z
`

const boundsOfHours = `
UTC 2026-06-01T12:34:56.789Z 2026-06-01T12:00:00Z 2026-06-01T13:00:00Z
UTC 2026-06-01T13:00:00Z 2026-06-01T13:00:00Z 2026-06-01T14:00:00Z
Asia/Kolkata 2026-06-01T12:29:59.999999Z 2026-06-01T11:30:00Z 2026-06-01T12:30:00Z
Asia/Kathmandu 2026-06-01T12:34:56Z 2026-06-01T12:15:00Z 2026-06-01T13:15:00Z
America/Los_Angeles 2026-11-01T08:30:00Z 2026-11-01T08:00:00Z 2026-11-01T09:00:00Z
America/Los_Angeles 2026-11-01T09:30:00Z 2026-11-01T09:00:00Z 2026-11-01T10:00:00Z
America/Los_Angeles 2026-03-08T10:30:00Z 2026-03-08T10:00:00Z 2026-03-08T11:00:00Z
# On Lord Howe the clock moves by half an hour, at 15:00 UTC.
Australia/Lord_Howe 2026-04-04T14:59:59Z 2026-04-04T14:00:00Z 2026-04-04T15:00:00Z
Australia/Lord_Howe 2026-04-04T15:10:00Z 2026-04-04T15:00:00Z 2026-04-04T15:30:00Z
Australia/Lord_Howe 2026-10-03T15:40:00Z 2026-10-03T15:30:00Z 2026-10-03T16:00:00Z
`

// oddZones have had clock changes at midnight, across it, by half hours, and across the date line.
var oddZones = []string{
	"UTC", "America/Los_Angeles", "America/St_Johns", "America/Sao_Paulo", "America/Havana",
	"America/Scoresbysund", "Africa/Cairo", "Africa/Casablanca", "Asia/Beirut", "Asia/Gaza",
	"Asia/Tehran", "Asia/Kathmandu", "Asia/Pyongyang", "Atlantic/Azores", "Australia/Lord_Howe",
	"Europe/Berlin", "Europe/Dublin", "Pacific/Apia", "Pacific/Chatham", "Pacific/Kiritimati",
}

func TestBoundsFollowOneAnother(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SampledFrom([]string{"day", "hour"}).Draw(rt, "window")
		w := window(t, text, rapid.SampledFrom(oddZones).Draw(rt, "zone"))
		from, until := at(t, "1990-01-01T00:00:00Z"), at(t, "2060-01-01T00:00:00Z")
		now := time.UnixMicro(rapid.Int64Range(from.UnixMicro(), until.UnixMicro()).Draw(rt, "µs"))
		if rapid.Bool().Draw(rt, "near a change") {
			if _, change := now.In(w.Zone).ZoneBounds(); !change.IsZero() {
				seconds := rapid.IntRange(-26*3600, 26*3600).Draw(rt, "s")
				now = change.Add(time.Second * time.Duration(seconds))
			}
		}
		start, end := w.Bounds(now)
		if now.Before(start) || !now.Before(end) || end.Sub(start) > w.Longest() {
			rt.Fatalf("%s at %s: %s to %s", w, now.UTC(), start, end)
		}
		for _, inside := range []time.Time{start, end.Add(-time.Nanosecond)} {
			if s, e := w.Bounds(inside); !s.Equal(start) || !e.Equal(end) {
				rt.Fatalf("%s at %s: %s to %s, then %s to %s", w, now, start, end, s, e)
			}
		}
		if s, _ := w.Bounds(end); !s.Equal(end) {
			rt.Fatalf("%s: %s to %s, then from %s on", w, start, end, s)
		}
		if _, e := w.Bounds(start.Add(-time.Nanosecond)); !e.Equal(start) {
			rt.Fatalf("%s: %s to %s, but until %s before", w, start, end, e)
		}
	})
}

func TestParseWindow(t *testing.T) {
	for _, c := range []struct{ text, zone, want string }{
		{"24h", "", "24h"}, {"90m", "", "1h30m"}, {"1m", "", "1m"}, {"10m", "", "10m"},
		{"1h0m1s", "", "1h0m1s"}, {"1ms", "", "1ms"}, {"100s", "", "1m40s"}, {"20s", "", "20s"},
		{"8784h", "", "8784h"}, {"1000000ns", "", "1ms"}, {"day", "", "day UTC"},
		{"day", "America/Los_Angeles", "day America/Los_Angeles"},
		{"hour", "Asia/Kolkata", "hour Asia/Kolkata"},
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
		{"", ""}, {"0", ""}, {"0s", ""}, {"-1h", ""}, {"999us", ""}, {"8785h", ""}, {"month", ""},
		{"24", ""}, {"1d", ""}, {"24h", "UTC"}, {"day", "Mars/Olympus"}, {"day", "Local"},
		{"day", "../etc/passwd"},
	} {
		if w, err := ParseWindow(c.text, c.zone); err == nil {
			t.Errorf("%q %q is read as %s", c.text, c.zone, w)
		}
	}
}

func TestRetentionFor(t *testing.T) {
	for windows, hours := range map[string]time.Duration{
		"": 72, "24h day": 72, "48h": 72, "1m 168h": 192,
	} {
		var limits []Limit
		for text := range strings.FieldsSeq(windows) {
			limits = append(limits, Limit{Window: window(t, text, "")})
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

// TestDeniedByPace: units are left, so it is not called exhausted; who looks for ErrExhausted finds
// it all the same.
func TestDeniedByPace(t *testing.T) {
	at := time.Date(2026, time.June, 1, 12, 0, 0, 1000, time.UTC)
	for limit, want := range map[string]string{
		PaceName:      "held back by the pace, retry at 2026-06-01T12:00:01Z",
		"default 24h": "quota exhausted: default 24h, retry at 2026-06-01T12:00:01Z",
	} {
		err := &DeniedError{Decision{Limit: limit, RetryAt: at}}
		if err.Error() != want || !errors.Is(err, ErrExhausted) {
			t.Errorf("%v", err)
		}
	}
}
