package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"
)

var zones = []string{"UTC", "America/Los_Angeles", "Europe/Berlin", "Australia/Lord_Howe",
	"America/Sao_Paulo", "Africa/Cairo", "Asia/Kolkata", "Asia/Kathmandu", "America/St_Johns",
	"Pacific/Chatham", "Africa/Casablanca", "Pacific/Apia", "Asia/Tehran", "America/Caracas",
	"Antarctica/Troll", "Europe/Bucharest", "Antarctica/Macquarie", "America/Indiana/Vincennes",
	"America/Havana", "Asia/Pyongyang"}

func drawSpec(t *rapid.T) string {
	minute := rapid.SampledFrom([]string{"*", "*/10", "*/7", "0", "30", "0,15,59", "5-20/5",
		"45"}).Draw(t, "minute")
	hour := rapid.SampledFrom([]string{"*", "*/3", "0", "1", "2", "3", "0-3", "23", "1,2",
		"5"}).Draw(t, "hour")
	day := rapid.SampledFrom([]string{"* * *", "* * *", "* * sun", "1 * *", "*/2 * *", "13 * fri",
		"28-31 * *", "* 3,10-11 *", "29 2 *"}).Draw(t, "day")
	return minute + " " + hour + " " + day
}

// drawMoment draws a moment from 2000 to 2050, any or one near a clock change.
func drawMoment(t *rapid.T, z *time.Location) time.Time {
	m := time.Unix(rapid.Int64Range(946_684_800, 2_524_608_000).Draw(t, "moment"), 0)
	if rapid.Bool().Draw(t, "near a change") {
		if _, change := m.In(z).ZoneBounds(); !change.IsZero() {
			m = change.Add(time.Duration(rapid.IntRange(-30*3600, 6*3600).Draw(t,
				"away")) * time.Second)
		}
	}
	return m
}

// walked finds the ticks by brute force: it steps through time by the minute and looks at the
// wall clock.
func walked(w cronFields, z *time.Location, from, to time.Time) []time.Time {
	var ticks []time.Time
	shown := func(u int64) int64 {
		_, offset := time.Unix(u, 0).In(z).Zone()
		return u + int64(offset)
	}
	named := func(wall int64) bool { return w.next(wall) == wall }
	start := from.Unix() - from.Unix()%60 - 50*3600
	latest := shown(start) // the latest time the clock has shown
	for u := start + 60; u <= to.Unix(); u += 60 {
		wall := shown(u)
		tick := false
		// all times that the clock passed in this minute, including wall
		for ; latest < wall; latest += 60 {
			tick = tick || named(latest+60)
		}
		if tick && u > from.Unix() {
			ticks = append(ticks, time.Unix(u, 0).UTC())
		}
	}
	return ticks
}

// TestAsWalked: a wall minute that occurs once or twice gives one tick, the first time; the
// minutes in a gap give one tick at its end.
func TestAsWalked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(zones).Draw(t, "zone")
		z, err := time.LoadLocation(name)
		must(t, err)
		s, err := Parse(drawSpec(t), z)
		must(t, err)
		from := drawMoment(t, z)
		to := from.Add(40 * time.Hour)
		got, want := slices.Collect(s.Ticks(from, to)), walked(s.fields, z, from, to)
		if !slices.Equal(got, want) {
			t.Fatalf("%q in %s after %s:\n got %s\nwant %s", s, name, from.UTC(), got, want)
		}
		if n := s.Count(from, to); n != int64(len(want)) {
			t.Fatalf("%q in %s after %s: counted %d, want %s", s, name, from.UTC(), n, want)
		}
	})
}

// TestNextPrevTicks: Next only goes forward, Ticks repeats Next, and Prev undoes Next.
func TestNextPrevTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		must(t, err)
		spec := drawSpec(t)
		if rapid.IntRange(0, 4).Draw(t, "every") == 0 {
			spec = fmt.Sprintf("@every %ds", rapid.IntRange(1, 400_000).Draw(t, "seconds"))
		}
		s, err := Parse(spec, z)
		must(t, err)
		from := drawMoment(t, z).Add(time.Duration(rapid.IntRange(0, 999_999_999).Draw(t, "ns")))
		var steps []time.Time
		for m := from; len(steps) < 200; m = steps[len(steps)-1] {
			next := s.Next(m)
			if !next.After(m) {
				t.Fatalf("%q: %s after %s", spec, next, m)
			}
			if prev, ok := s.Prev(next); !ok || prev != next {
				t.Fatalf("%q: at its tick %s the last is %s %v", spec, next, prev, ok)
			}
			if prev, ok := s.Prev(next.Add(-1)); len(steps) > 0 && next.Sub(m) < LookBack &&
				(!ok || prev != m) {
				t.Fatalf("%q: before %s the last is %s %v, want %s", spec, next, prev, ok, m)
			}
			steps = append(steps, next)
		}
		if got := slices.Collect(s.Ticks(from, steps[len(steps)-1])); !slices.Equal(got, steps) {
			t.Fatalf("%q after %s: Ticks gives %s, Next %s", spec, from, got, steps)
		}
		for i, m := range steps {
			if n := s.Count(m, steps[len(steps)-1]); n != int64(len(steps)-1-i) {
				t.Fatalf("%q after %s: counted %d of %s", spec, m, n, steps[i+1:])
			}
		}
	})
}

// TestAsCron: in a zone without clock changes the ticks equal the cron library's.
func TestAsCron(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z, err := time.LoadLocation(rapid.SampledFrom([]string{"UTC", "Asia/Kolkata", "Asia/Tokyo",
			"Etc/GMT+12"}).Draw(t, "zone"))
		must(t, err)
		spec := drawSpec(t)
		s, err := Parse(spec, z)
		must(t, err)
		theirs, err := cron.ParseStandard(spec)
		must(t, err)
		m := drawMoment(t, z).In(z)
		for range 50 {
			got, want := s.Next(m), theirs.Next(m)
			if want.IsZero() {
				return // the library looks only five years ahead
			}
			if !got.Equal(want) {
				t.Fatalf("%q after %s: %s, there %s", spec, m, got.In(z), want)
			}
			m = want
		}
	})
}
