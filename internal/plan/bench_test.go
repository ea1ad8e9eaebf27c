package plan

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// BenchmarkYear: 365 days of 8 regions every 10 minutes, 4 pages each, when they fit and when they are short.
func BenchmarkYear(b *testing.B) {
	for _, c := range []struct {
		name  string
		units int64
		paced bool
	}{{"fits", 10_000, false}, {"paced", 10_000, true}, {"short", 2_500, false}} {
		b.Run(c.name, func(b *testing.B) {
			p := Plan{Lanes: lanes(b, "*/10 * * * *", 4, time.Minute, eight...), Price: price, Reset: day(b, "America/Los_Angeles"),
				From: at(b, "2026-01-01T08:00:00Z"), To: at(b, "2027-01-01T08:00:00Z"), Step: time.Hour,
				Limits: []quota.Limit{sliding(c.units, 24*time.Hour), daily(b, c.units, "America/Los_Angeles")}}
			if c.paced {
				p.Paces = []quota.Limit{p.Limits[1]}
				p.Paces[0].Pace = &quota.Pace{Slack: 250}
			}
			for b.Loop() {
				r := p.Execute()
				if r.Runs != 365*24*6*8 {
					b.Fatal(r.Runs)
				}
				b.ReportMetric(float64(r.Lost()), "lost")
			}
		})
	}
}
