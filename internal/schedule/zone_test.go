package schedule

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDaylight checks the ticks of local days on which the clock changes, shown with the clock's
// offset. TestAsWalked covers more zones.
func TestDaylight(t *testing.T) {
	for _, day := range []struct {
		zone, from, to string
		ticks          map[string]string
	}{
		// 02:00 -08 is 03:00 -07
		{"America/Los_Angeles", "2026-03-08T08:00:00Z", "2026-03-09T07:00:00Z", map[string]string{
			"59 1 * * *":             "01:59-08",
			"0 2 * * *":              "03:00-07",
			"30 2 * * *":             "03:00-07",
			"59 2 * * *":             "03:00-07",
			"0 3 * * *":              "03:00-07",
			"1 3 * * *":              "03:01-07",
			"*/15 2 * * *":           "03:00-07",
			"0,30 2,3 * * *":         "03:00-07 03:30-07",
			"30 1-4 * * *":           "01:30-08 03:00-07 03:30-07 04:30-07",
			"0 0-9/3 * * *":          "03:00-07 06:00-07 09:00-07 00:00-07",
			"*/20 1-3 * * *":         "01:00-08 01:20-08 01:40-08 03:00-07 03:20-07 03:40-07",
			"30 2 8 3 *":             "03:00-07",
			"30 2 9 3 *":             "",
			"30 2 * * mon":           "",
			"CRON_TZ=UTC 30 9 * * *": "01:30-08",
			"@every 6h":              "05:00-07 11:00-07 17:00-07 23:00-07", // 12:00Z and so on
		}},
		// 02:00 -07 is 01:00 -08
		{"America/Los_Angeles", "2026-11-01T07:00:00Z", "2026-11-02T08:00:00Z", map[string]string{
			"59 0 * * *":             "00:59-07",
			"0 1 * * *":              "01:00-07",
			"30 1 * * *":             "01:30-07",
			"59 1 * * *":             "01:59-07",
			"0 2 * * *":              "02:00-08",
			"30 0-2 * * *":           "00:30-07 01:30-07 02:30-08",
			"0 0-9/3 * * *":          "03:00-08 06:00-08 09:00-08 00:00-08",
			"*/20 1,2 * * *":         "01:00-07 01:20-07 01:40-07 02:00-08 02:20-08 02:40-08",
			"CRON_TZ=UTC 30 9 * * *": "01:30-08",
			"@every 6h":              "04:00-08 10:00-08 16:00-08 22:00-08",
		}},
		// 02:00 +10:30 is 02:30 +11
		{"Australia/Lord_Howe", "2026-10-03T13:30:00Z", "2026-10-04T13:00:00Z", map[string]string{
			"15 2 * * *":     "02:30+11",
			"0,15 2 * * *":   "02:30+11",
			"45 2 * * *":     "02:45+11",
			"*/20 1-2 * * *": "01:00+10:30 01:20+10:30 01:40+10:30 02:30+11 02:40+11",
		}},
		// 02:00 +11 is 01:30 +10:30
		{"Australia/Lord_Howe", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z", map[string]string{
			"15 1 * * *":     "01:15+11",
			"45 1 * * *":     "01:45+11",
			"0 2 * * *":      "02:00+10:30",
			"*/30 1,2 * * *": "01:00+11 01:30+11 02:00+10:30 02:30+10:30",
		}},
		// 00:00 -03 is 01:00 -02
		{"America/Sao_Paulo", "2018-11-04T02:59:59Z", "2018-11-05T01:59:59Z", map[string]string{
			"@daily":      "01:00-02",
			"30 0 * * *":  "01:00-02",
			"0 0,1 * * *": "01:00-02",
			"30 23 * * *": "23:30-02",
			"0 0 4 11 *":  "01:00-02",
			"0 0 * * sun": "01:00-02",
			"0 0 5 11 *":  "",
		}},
		// 00:00 -02 is 23:00 -03
		{"America/Sao_Paulo", "2018-02-17T01:59:59Z", "2018-02-18T02:59:59Z", map[string]string{
			"@daily":           "00:00-02",
			"30 23 * * *":      "23:30-02",
			"*/30 22,23 * * *": "22:00-02 22:30-02 23:00-02 23:30-02",
		}},
		// no 30 December
		{"Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-31T10:00:00Z", map[string]string{
			"0 12 * * *":  "00:00+14 12:00+14",
			"0 */8 * * *": "00:00+14 08:00+14 16:00+14 00:00+14",
			"0 12 30 * *": "00:00+14",
		}},
		// a leap year beyond the zone tables
		{"America/Los_Angeles", "2040-12-31T00:00:00Z", "2041-01-01T10:00:00Z", map[string]string{
			"0 */12 * * *": "00:00-08 12:00-08 00:00-08",
		}},
	} {
		for spec, want := range day.ticks {
			got := ""
			for tick := range parsed(t, spec, day.zone).Ticks(at(t, day.from), at(t, day.to)) {
				got += " " + strings.TrimSuffix(tick.In(zone(t, day.zone)).Format("15:04-07:00"),
					":00")
			}
			if got = strings.TrimSpace(got); got != want {
				t.Errorf("%q in %s on the day after %s:\n got %s\nwant %s", spec, day.zone,
					day.from, got, want)
			}
		}
	}
}

// change is a moment and the zone's offset from then on, both in minutes. The moment counts from
// 2026-06-01T12:00Z.
type change struct{ at, offset int }

// oddZone returns a zone that begins in UTC, built in the format of RFC 8536, with a rule for the
// time after the last change.
func oddZone(t *testing.T, rule string, changes ...change) *time.Location {
	t.Helper()
	noon := at(t, "2026-06-01T12:00:00Z").Unix()
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			must(t, binary.Write(&b, binary.BigEndian, v))
		}
	}
	header := func(changes, kinds int) {
		b.WriteString("TZif2" + string(make([]byte, 15)))
		put([]uint32{0, 0, 0, uint32(changes), uint32(kinds), 4})
	}
	header(0, 1) // for old readers: one zone
	put(int32(0), uint16(0), []byte("ODD\x00"))
	header(len(changes), len(changes)+1)
	for _, c := range changes {
		put(noon + int64(c.at)*60)
	}
	for i := range changes {
		put(uint8(i + 1))
	}
	put(int32(0), uint16(0))
	for _, c := range changes {
		put(int32(c.offset*60), uint16(0))
	}
	b.WriteString("ODD\x00\n" + rule + "\n")
	z, err := time.LoadLocationFromTZData("Odd", b.Bytes())
	must(t, err)
	return z
}

// TestOddZones: zones whose clock changes again before it has caught up, or whose tables
// contradict the rule.
func TestOddZones(t *testing.T) {
	for name, z := range map[string]*time.Location{
		"back an hour, forward after twenty minutes": oddZone(t, "", change{0, -60}, change{20, 0}),
		"back twice":                      oddZone(t, "", change{0, -60}, change{20, -120}),
		"forward, back after ten minutes": oddZone(t, "", change{0, 60}, change{10, 0}),
		"back a day, forward some": oddZone(t, "", change{0, -1440}, change{300, -1200},
			change{600, 0}),
		"forward a day": oddZone(t, "", change{0, 1440}, change{60, 1500}),
		"the rule says summer already": oddZone(t, "AAA0BBB,M3.2.0,M11.1.0", change{0, 0},
			change{90, -60}),
		"a table that ends before the rule": oddZone(t, "AAA3BBB,M6.1.1/8,M11.1.0",
			change{0, -180}),
		"a rule from another zone": oddZone(t, "AAA-5", change{0, 60}, change{300, 0}),
	} {
		for _, spec := range []string{"* * * * *", "*/7 * * * *", "30 * * * *", "10 12 * * *",
			"45 11 * * *", "0 0 * * *", "5,50 10-13 * * *"} {
			s, err := Parse(spec, z)
			must(t, err)
			from, to := at(t, "2026-05-31T00:00:00Z"), at(t, "2026-06-04T00:00:00Z")
			got, want := slices.Collect(s.Ticks(from, to)), walked(s.fields, z, from, to)
			if !slices.Equal(got, want) {
				t.Errorf("%s, %q:\n got %s\nwant %s", name, spec, short(got), short(want))
			}
			var steps []time.Time // found by separate calls
			for m := s.Next(from); !m.After(to); m = s.Next(m) {
				steps = append(steps, m)
			}
			if !slices.Equal(steps, want) {
				t.Errorf("%s, %q, by Next:\n got %s\nwant %s", name, spec, short(steps),
					short(want))
			}
		}
	}
}

func short(moments []time.Time) []string {
	var all []string
	for _, m := range moments[:min(len(moments), 100)] {
		all = append(all, m.Format("2T15:04"))
	}
	return all
}
