package schedule

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the tests must not depend on the machine's zones

	"pgregory.net/rapid"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	must(t, err)
	return z
}

func parsed(t testing.TB, spec, zoneName string) *Schedule {
	t.Helper()
	s, err := Parse(spec, zone(t, zoneName))
	must(t, err)
	return s
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339Nano, text)
	must(t, err)
	return moment
}

// TestNext: Next is strictly after t, for any fraction of a second and any zone of the argument.
func TestNext(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for _, c := range []struct{ spec, zone, after, want string }{
		{"0 */3 * * *", "UTC", "2026-06-01T02:59:59Z", "2026-06-01T03:00:00Z"},
		{"0 */3 * * *", "UTC", "2026-06-01T02:59:59.999999999Z", "2026-06-01T03:00:00Z"},
		{"0 */3 * * *", "UTC", "2026-06-01T03:00:00Z", "2026-06-01T06:00:00Z"},
		{"0 */3 * * *", "UTC", "2026-06-01T03:00:00.000000001Z", "2026-06-01T06:00:00Z"},
		{"0 */3 * * *", "UTC", "2026-06-01T21:00:00Z", "2026-06-02T00:00:00Z"},
		{"0 */3 * * *", "Asia/Kolkata", "2026-06-01T00:00:00Z", "2026-06-01T00:30:00Z"},
		{"30 6 * * *", "Asia/Kathmandu", "2026-06-01T00:00:00Z", "2026-06-01T00:45:00Z"},
		{"30 6 * * *", "America/St_Johns", "2026-06-01T00:00:00Z", "2026-06-01T09:00:00Z"},
		{"@daily", "Asia/Tokyo", "2026-06-01T00:00:00Z", "2026-06-01T15:00:00Z"},
		{"CRON_TZ=Asia/Tokyo @daily", "America/Los_Angeles", "2026-06-01T00:00:00Z",
			"2026-06-01T15:00:00Z"},
		{"TZ=Asia/Tokyo\t 30   0 * * *", "America/Los_Angeles", "2026-06-01T00:00:00Z",
			"2026-06-01T15:30:00Z"},
		{"0 0 29 2 *", "UTC", "2026-06-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		// in eight years, beyond the cron library's search
		{"0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 0 31 * *", "UTC", "2026-04-01T00:00:00Z", "2026-05-31T00:00:00Z"},
		{"0 0 13 * fri", "UTC", "2026-06-01T00:00:00Z", "2026-06-05T00:00:00Z"}, // either day
		{"0 0 13 * fri", "UTC", "2026-06-05T00:00:00Z", "2026-06-12T00:00:00Z"},
		{"0 0 13 * fri", "UTC", "2026-06-12T00:00:00Z", "2026-06-13T00:00:00Z"},
		{"0 0 * jan sun", "UTC", "2026-06-01T00:00:00Z", "2027-01-03T00:00:00Z"},
		{"@weekly", "UTC", "1969-12-20T00:00:00Z", "1969-12-21T00:00:00Z"},
		{"* * * * *", "UTC", "1969-12-31T23:58:59.5Z", "1969-12-31T23:59:00Z"},
		{"@every 90s", "Europe/Berlin", "1970-01-01T00:00:00Z", "1970-01-01T00:01:30Z"},
		{"@every 90s", "Europe/Berlin", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"},
		{"@every 90s", "Europe/Berlin", "1969-12-31T23:58:29.9Z", "1969-12-31T23:58:30Z"},
		// 70 356 times 7h since 1970
		{"@every 7h", "America/Los_Angeles", "2026-03-08T09:00:00Z", "2026-03-08T12:00:00Z"},
		{"CRON_TZ=Asia/Tokyo @every 1h30m", "UTC", "2026-06-01T00:10:00Z", "2026-06-01T01:30:00Z"},
	} {
		s := parsed(t, c.spec, c.zone)
		if got := s.Next(at(t, c.after)); got != at(t, c.want) {
			t.Errorf("%q in %s after %s: %s, want %s", c.spec, c.zone, c.after,
				got.Format(time.RFC3339), c.want)
		}
		if got := s.Next(at(t, c.after).In(berlin)); got != at(t, c.want) {
			t.Errorf("%q in %s after %s, held in Berlin: %s", c.spec, c.zone, c.after, got)
		}
	}
}

func TestPrev(t *testing.T) {
	for _, c := range []struct{ spec, zone, at, want string }{
		{"0 */3 * * *", "UTC", "2026-06-01T03:00:00Z", "2026-06-01T03:00:00Z"},
		{"0 */3 * * *", "UTC", "2026-06-01T02:59:59.999999999Z", "2026-06-01T00:00:00Z"},
		{"0 */3 * * *", "UTC", "2026-06-01T05:00:00Z", "2026-06-01T03:00:00Z"},
		{"* * * 1 *", "UTC", "2026-12-31T00:00:00Z", "2026-01-31T23:59:00Z"},
		// the first moment after the gap
		{"30 2 * * *", "America/Los_Angeles", "2026-03-08T12:00:00Z", "2026-03-08T10:00:00Z"},
		// the first of the two 01:30
		{"30 1 * * *", "America/Los_Angeles", "2026-11-01T09:30:00Z", "2026-11-01T08:30:00Z"},
		{"@every 90s", "UTC", "1970-01-01T00:01:29Z", "1970-01-01T00:00:00Z"},
		// 366 days less a second
		{"@yearly", "UTC", "2024-12-31T23:59:59Z", "2024-01-01T00:00:00Z"},
		{"0 0 29 2 *", "UTC", "2025-02-28T23:59:59Z", "2024-02-29T00:00:00Z"},
		{"0 0 29 2 *", "UTC", "2025-03-01T00:00:00Z", ""},
		{"0 0 29 2 *", "UTC", "2028-02-28T23:59:59Z", ""},
		{"@every 9000h", "UTC", "1971-01-11T00:00:00Z", "1971-01-11T00:00:00Z"},
		{"@every 9000h", "UTC", "1972-01-11T23:59:59Z", "1971-01-11T00:00:00Z"},
		{"@every 9000h", "UTC", "1972-01-12T00:00:00Z", ""},
	} {
		got, ok := parsed(t, c.spec, c.zone).Prev(at(t, c.at))
		if c.want == "" {
			if ok {
				t.Errorf("%q at %s: %s, want none", c.spec, c.at, got)
			}
			continue
		}
		if !ok || got != at(t, c.want) {
			t.Errorf("%q in %s at %s: %s %v, want %s", c.spec, c.zone, c.at, got, ok, c.want)
		}
	}
}

func TestTicks(t *testing.T) {
	s := parsed(t, "*/30 * * * *", "Asia/Kolkata")
	from, to := at(t, "2026-06-01T00:00:00Z"), at(t, "2026-06-01T01:00:00Z")
	if got, want := hours(s, from, to, time.UTC), "00:30 01:00"; got != want {
		t.Errorf("%s, want %s: after the beginning, up to the end", got, want)
	}
	if got := hours(s, from, from, time.UTC); got != "" {
		t.Errorf("%s in an empty span", got)
	}
	for tick := range s.Ticks(from, to) {
		if tick.Location() != time.UTC {
			t.Errorf("%s is not in UTC", tick)
		}
		break
	}
}

func TestInterval(t *testing.T) {
	for spec, want := range map[string]time.Duration{
		"* * * * *": time.Minute, "*/10 * * * *": 10 * time.Minute, "*/7 * * * *": 4 * time.Minute,
		"0 */3 * * *": 3 * time.Hour,
		"0 */5 * * *": 4 * time.Hour, "0,50 9 * * *": 50 * time.Minute, "30 23,0 * * *": time.Hour,
		"55 23,0 * * mon": 23 * time.Hour,
		"@hourly":         time.Hour, "@daily": 24 * time.Hour, "@weekly": 7 * 24 * time.Hour,
		"@monthly": 28 * 24 * time.Hour,
		"@yearly":  365 * 24 * time.Hour, "0 0 29 2 *": 1461 * 24 * time.Hour,
		"0 12 * * mon,wed": 48 * time.Hour,
		"0 0 31 * *":       31 * 24 * time.Hour, "0 0,12 1 * *": 12 * time.Hour,
		"0 0,23 * * *": time.Hour,
		"@every 90s":   90 * time.Second, "@every 1000h": 1000 * time.Hour,
	} {
		if got := parsed(t, spec, "America/Los_Angeles").Interval(); got != want {
			t.Errorf("%q: %s, want %s", spec, got, want)
		}
	}
}

// hours returns the ticks in (from, to] as shown by a clock in the zone.
func hours(s *Schedule, from, to time.Time, zone *time.Location) string {
	var all []string
	for tick := range s.Ticks(from, to) {
		all = append(all, tick.In(zone).Format("15:04"))
	}
	return strings.Join(all, " ")
}

// must fails the test on an error.
func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
