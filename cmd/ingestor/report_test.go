package main

import (
	"testing"
	"time"
)

// TestClockOfADay: a moment has its date unless that is the date of the upstream's day.
func TestClockOfADay(t *testing.T) {
	los, err := time.LoadLocation("America/Los_Angeles")
	must(t, err)
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, los)
	for hours, want := range map[time.Duration]string{
		1: "09:00Z", 15: "23:00Z", 16: "2026-11-22 00:00Z", 23: "2026-11-22 07:00Z",
	} {
		if got := (&planned{zone: los}).clock(day, day.Add(hours*time.Hour)); got != want {
			t.Errorf("%d hours: %s, want %s", hours, got, want)
		}
	}
}
