package schedule

import (
	"testing"
	"time"
)

// BenchmarkYear is what a plan asks for: a year of eight lanes every ten minutes.
func BenchmarkYear(b *testing.B) {
	s := parsed(b, "*/10 * * * *", "America/Los_Angeles")
	from := at(b, "2026-01-01T08:00:00Z")
	for b.Loop() {
		n := 0
		for i := range 8 {
			lane := Lane{"trending", "US", s, time.Duration(i) * time.Minute}
			for range lane.Ticks(from, from.AddDate(1, 0, 0)) {
				n++
			}
		}
		b.ReportMetric(float64(n), "ticks/op")
	}
}

func BenchmarkNext(b *testing.B) {
	for _, spec := range []string{"*/10 * * * *", "@yearly", "0 0 29 2 *", "@every 90s"} {
		b.Run(spec, func(b *testing.B) {
			s := parsed(b, spec, "America/Los_Angeles")
			from := at(b, "2026-06-01T08:00:00Z")
			for b.Loop() {
				s.Next(from)
			}
		})
	}
}

func BenchmarkPrev(b *testing.B) {
	for _, spec := range []string{"*/10 * * * *", "@yearly", "* * * 1 *"} {
		b.Run(spec, func(b *testing.B) {
			s := parsed(b, spec, "America/Los_Angeles")
			from := at(b, "2026-12-31T08:00:00Z")
			for b.Loop() {
				s.Prev(from)
			}
		})
	}
}
