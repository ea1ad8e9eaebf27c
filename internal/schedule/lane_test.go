package schedule

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLane(t *testing.T) {
	lane := Lane{LaneID{"asia", "JP"}, parsed(t, "0 */3 * * *", "UTC"), 5 * time.Minute}
	next := lane.Next(at(t, "2026-06-01T03:04:59.5Z"))
	if next.At != at(t, "2026-06-01T03:05:00Z") || next.ID() != "asia/JP/2026-06-01T03:00:00Z" ||
		next.Job != "asia" || next.Region != "JP" {
		t.Errorf("%+v %s", next, next.ID())
	}
	if after := lane.Next(next.At); after.At != at(t, "2026-06-01T06:05:00Z") {
		t.Errorf("after its own moment: %+v", after)
	}
	prev, ok := lane.Prev(next.At)
	if !ok || prev != next {
		t.Errorf("at its own moment: %+v, want %+v", prev, next)
	}
	if prev, ok = lane.Prev(next.At.Add(-1)); !ok || prev.At != at(t, "2026-06-01T00:05:00Z") {
		t.Errorf("just before: %+v", prev)
	}
	if _, ok = (Lane{Schedule: parsed(t, "0 0 29 2 *", "UTC")}).Prev(next.At); ok {
		t.Error("a tick more than a year back")
	}
	var ids []string
	for tick := range lane.Ticks(at(t, "2026-06-01T03:04:00Z"), at(t, "2026-06-01T09:04:00Z")) {
		ids = append(ids, tick.ID())
	}
	if want := []string{"asia/JP/2026-06-01T03:00:00Z",
		"asia/JP/2026-06-01T06:00:00Z"}; !slices.Equal(ids, want) {
		t.Errorf("%s, want %s", ids, want)
	}
	for range lane.Ticks(next.At, at(t, "2026-07-01T00:00:00Z")) {
		break
	}
}

// TestTickID: a tick's ID depends neither on the offset nor on the zone of its time.
func TestTickID(t *testing.T) {
	lane := Lane{LaneID{"j", "US"}, parsed(t, "30 2 * * *", "America/Los_Angeles"), 0}
	early := lane.Next(at(t, "2026-03-08T09:00:00Z"))
	lane.Offset = time.Hour
	late := lane.Next(at(t, "2026-03-08T10:30:00Z"))
	if early.ID() != "j/US/2026-03-08T10:00:00Z" || late.ID() != early.ID() ||
		late.At.Sub(early.At) != time.Hour {
		t.Errorf("%s at %s, %s at %s", early.ID(), early.At, late.ID(), late.At)
	}
	late.Scheduled = late.Scheduled.In(zone(t, "Asia/Tokyo"))
	if late.ID() != early.ID() {
		t.Errorf("with a time in Tokyo: %s", late.ID())
	}
}

func TestOffsets(t *testing.T) {
	s := parsed(t, "0 */3 * * *", "America/Los_Angeles")
	regions := []string{"US", "GB", "DE"}
	for _, c := range []struct {
		stagger Stagger
		want    []time.Duration
	}{
		{Stagger{}, []time.Duration{0, 0, 0}},
		{Stagger{Step: 5 * time.Minute}, []time.Duration{0, 5 * time.Minute, 10 * time.Minute}},
		{Stagger{Step: -time.Minute}, []time.Duration{0, 0, 0}},
		// Fixed values, because another version of the program must compute the same.
		{Stagger{Auto: true, Step: time.Hour},
			[]time.Duration{6717 * time.Second, 9193 * time.Second, 4188 * time.Second}},
	} {
		if got := c.stagger.Offsets(regions, s); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %s, want %s", c.stagger, got, c.want)
		}
	}
	if got := (Stagger{Auto: true}).Offsets([]string{"US"},
		parsed(t, "@every 1s", "UTC")); got[0] != 0 {
		t.Errorf("%s within one second", got)
	}
}

// TestOffsetsStay: a derived offset is a whole number of seconds within the interval, and does
// not change when other regions come or go, when the order changes, or when the job moves to
// another zone.
func TestOffsetsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		regions := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Z]{2}`), 1, 20,
			rapid.ID[string]).Draw(t, "regions")
		others := rapid.SliceOf(rapid.StringMatching(`[A-Z]{2}`)).Draw(t, "others")
		spec := drawSpec(t)
		s, err := Parse(spec, time.UTC)
		must(t, err)
		elsewhere, err := Parse("CRON_TZ=Europe/Berlin "+spec, time.UTC)
		must(t, err)
		auto := Stagger{Auto: true}
		got := auto.Offsets(regions, s)
		if more := auto.Offsets(slices.Concat(others, regions),
			elsewhere)[len(others):]; !slices.Equal(got, more) {
			t.Fatalf("%s became %s", got, more)
		}
		for _, offset := range got {
			if offset < 0 || offset >= s.Interval() || offset%time.Second != 0 {
				t.Fatalf("%s in an interval of %s", offset, s.Interval())
			}
		}
	})
}

// TestOffsetsSpread: the offsets of all 676 two-letter codes reach each of 32 parts of the
// interval.
func TestOffsetsSpread(t *testing.T) {
	s := parsed(t, "0 */3 * * *", "UTC")
	var codes []string
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			codes = append(codes, string([]rune{a, b}))
		}
	}
	parts := make([]int, 32)
	for _, offset := range (Stagger{Auto: true}).Offsets(codes, s) {
		parts[int(offset*32/s.Interval())]++
	}
	if least, largest := slices.Min(parts), slices.Max(parts); least < 8 || largest > 40 {
		t.Errorf("%d", parts)
	}
}
