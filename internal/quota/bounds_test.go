package quota

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBounds(t *testing.T) {
	for text, table := range map[string]string{
		"minute": boundsOfMinutes, "hour": boundsOfHours, "day": boundsOfDays,
		"week": boundsOfWeeks, "month": boundsOfMonths,
	} {
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

const boundsOfMinutes = `
UTC 2026-06-01T12:34:56.789Z 2026-06-01T12:34:00Z 2026-06-01T12:35:00Z
UTC 2026-06-01T12:35:00Z 2026-06-01T12:35:00Z 2026-06-01T12:36:00Z
Asia/Kathmandu 2026-06-01T18:14:59.999999Z 2026-06-01T18:14:00Z 2026-06-01T18:15:00Z
America/Los_Angeles 2026-11-01T08:59:30Z 2026-11-01T08:59:00Z 2026-11-01T09:00:00Z
# The clock goes back a minute past midnight: at 00:01, which is not a full minute of UTC before.
America/St_Johns 2010-11-07T02:30:59Z 2010-11-07T02:30:00Z 2010-11-07T02:31:00Z
# Until 1972 Liberia was 44 min 30 s behind UTC: minutes begin at half past.
Africa/Monrovia 1971-06-01T12:00:00Z 1971-06-01T11:59:30Z 1971-06-01T12:00:30Z
`

const boundsOfWeeks = `
# From Monday, 1 June 2026.
UTC 2026-06-01T00:00:00Z 2026-06-01T00:00:00Z 2026-06-08T00:00:00Z
UTC 2026-06-07T23:59:59.999999Z 2026-06-01T00:00:00Z 2026-06-08T00:00:00Z
UTC 2026-05-31T23:59:59Z 2026-05-25T00:00:00Z 2026-06-01T00:00:00Z
UTC 2026-12-31T12:00:00Z 2026-12-28T00:00:00Z 2027-01-04T00:00:00Z
# 167 and 169 hours.
Europe/Berlin 2026-03-25T12:00:00Z 2026-03-22T23:00:00Z 2026-03-29T22:00:00Z
Europe/Berlin 2026-10-25T22:59:59Z 2026-10-18T22:00:00Z 2026-10-25T23:00:00Z
# A week of six days: Samoa had no Friday, 30 December 2011.
Pacific/Apia 2011-12-30T12:00:00Z 2011-12-26T10:00:00Z 2012-01-01T10:00:00Z
# On Sunday, a minute past midnight, the clock goes back to Saturday: the week is not yet over.
America/St_Johns 2010-11-07T02:30:30Z 2010-11-01T02:30:00Z 2010-11-08T03:30:00Z
`

const boundsOfMonths = `
UTC 2026-06-30T23:59:59.999999Z 2026-06-01T00:00:00Z 2026-07-01T00:00:00Z
UTC 2026-12-31T12:00:00Z 2026-12-01T00:00:00Z 2027-01-01T00:00:00Z
UTC 2028-02-29T12:00:00Z 2028-02-01T00:00:00Z 2028-03-01T00:00:00Z
UTC 2026-01-31T12:00:00Z 2026-01-01T00:00:00Z 2026-02-01T00:00:00Z
America/Los_Angeles 2026-03-31T12:00:00Z 2026-03-01T08:00:00Z 2026-04-01T07:00:00Z
America/Los_Angeles 2026-11-01T06:59:59Z 2026-10-01T07:00:00Z 2026-11-01T07:00:00Z
America/Los_Angeles 2026-11-01T07:00:00Z 2026-11-01T07:00:00Z 2026-12-01T08:00:00Z
Pacific/Kiritimati 2026-06-30T10:00:00Z 2026-06-30T10:00:00Z 2026-07-31T10:00:00Z
Pacific/Apia 2011-12-30T12:00:00Z 2011-12-01T10:00:00Z 2011-12-31T10:00:00Z
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
		text := rapid.SampledFrom(calendars).Draw(rt, "window")
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
