package plan

import (
	"math"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// BenchmarkYear: 365 days of 8 regions every 10 minutes, 4 pages each, with enough units and with
// too few.
func BenchmarkYear(b *testing.B) {
	for _, c := range []struct {
		name  string
		units int64
		paced bool
	}{{"fits", 10_000, false}, {"paced", 10_000, true}, {"short", 2_500, false}} {
		b.Run(c.name, func(b *testing.B) {
			p := Plan{Lanes: lanes(b, "*/10 * * * *", 4, time.Minute, eight...), Price: price,
				Reset: day(b, "America/Los_Angeles"),
				From:  at(b, "2026-01-01T08:00:00Z"), To: at(b,
					"2027-01-01T08:00:00Z"), Step: time.Hour,
				Limits: []quota.Limit{sliding(c.units, 24*time.Hour),
					daily(b, c.units, "America/Los_Angeles")}}
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

// BenchmarkYearOfAll: 365 days of 110 regions every 10 minutes, 4 pages each.
func BenchmarkYearOfAll(b *testing.B) {
	var regions []string
	for i := range 110 {
		regions = append(regions, string([]byte{byte('A' + i/26), byte('A' + i%26)}))
	}
	for name, units := range map[string]int64{"fits": 100_000, "short": 30_000} {
		b.Run(name, func(b *testing.B) {
			p := Plan{Lanes: lanes(b, "*/10 * * * *", 4, 5*time.Second, regions...), Price: price,
				Reset: day(b, "America/Los_Angeles"),
				From:  at(b, "2026-01-01T08:00:00Z"), To: at(b,
					"2027-01-01T08:00:00Z"), Step: time.Hour,
				Limits: []quota.Limit{sliding(units, 24*time.Hour),
					daily(b, units, "America/Los_Angeles")}}
			for b.Loop() {
				r := p.Execute()
				b.ReportMetric(float64(r.Lost()), "lost")
			}
		})
	}
}

// BenchmarkSuggest finds the tightest schedule of 8 regions, over a year.
func BenchmarkSuggest(b *testing.B) {
	p := Plan{Lanes: lanes(b, "*/10 * * * *", 4, time.Minute, eight...), Price: price,
		Reset: day(b, "America/Los_Angeles"),
		From:  at(b, "2026-01-01T08:00:00Z"), To: at(b, "2026-01-08T08:00:00Z"),
		Limits: []quota.Limit{sliding(9500, 24*time.Hour), daily(b, 9500, "America/Los_Angeles")}}
	for b.Loop() {
		if _, ok := p.Suggest(b.Context(), Wish{Zone: time.UTC, Share: math.Inf(1)}); !ok {
			b.Fatal("nothing fits")
		}
	}
}
