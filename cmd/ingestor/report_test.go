package main

import (
	"testing"
	"time"

	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// TestAverageInterval: the ticks to come are counted, and a change of the clock among them does not
// show.
func TestAverageInterval(t *testing.T) {
	los, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	const h = time.Hour
	for spec, want := range map[string]time.Duration{
		"0 8,9 * * *":      12 * h,
		"0 */3 * * *":      3 * h,
		"0 4-20 * * *":     24 * h / 17,
		"0 9 * * mon-fri":  28 * 24 * h / 20,
		"30 2 * * *":       24 * h,
		"@every 5h":        5 * h,
		"@every 1s":        time.Second,
		"0 0 1 * *":        (4*365 + 1) * 24 * h / 48,
		"0 0 1,2 1 *":      (4*365 + 1) * 24 * h / 8,
		"0 0 1 1 *":        365 * 24 * h,
		"0 0 29 2 *":       (4*365 + 1) * 24 * h,
		"0,1 0-23/8 * * *": 4 * h,
	} {
		s, err := schedule.Parse(spec, los)
		if err != nil {
			t.Fatal(err)
		}
		lane := share.Lane{Lane: schedule.Lane{Schedule: s}, Zone: los}
		for _, now := range []time.Time{
			time.Date(2026, 6, 10, 12, 0, 0, 0, time.UTC),
			time.Date(2026, 10, 20, 15, 30, 0, 0, time.UTC), // it is winter when the four weeks end
			time.Date(2027, 3, 1, 16, 30, 0, 0, time.UTC),
		} {
			if got := averageInterval(lane, now); got != want.Round(time.Second) {
				t.Errorf("%q from %s: %s, want %s", spec, now, got, want)
			}
		}
	}
}

// TestClockOfADay: a moment has its date unless it is that of the upstream's day.
func TestClockOfADay(t *testing.T) {
	los, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, los)
	for hours, want := range map[time.Duration]string{
		1: "09:00Z", 15: "23:00Z", 16: "2026-11-22 00:00Z", 23: "2026-11-22 07:00Z",
	} {
		if got := (&planned{zone: los}).clock(day, day.Add(hours*time.Hour)); got != want {
			t.Errorf("%d hours: %s, want %s", hours, got, want)
		}
	}
}
