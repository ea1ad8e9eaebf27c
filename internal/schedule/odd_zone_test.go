package schedule

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"
)

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
