package forecast

import (
	"fmt"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// months are replayed so that the figures are more than luck, from a seed on that was not looked at when the constants of the
// package were chosen.
const (
	months    = 8
	firstSeed = 1000
)

// BenchmarkForecast replays months and prints how far the forecast was off, beside the straight line.
func BenchmarkForecast(b *testing.B) {
	day, err := quota.ParseWindow("day", "America/Los_Angeles")
	if err != nil {
		b.Fatal(err)
	}
	calendar := quota.Limit{Bucket: "default", Units: 10000, Headroom: 500, Window: day}
	sliding := calendar
	sliding.Window = quota.Sliding(24 * time.Hour)
	for range b.N {
		table("limit: the day", []quota.Limit{calendar})
		table("limits: the day and 24h", []quota.Limit{calendar, sliding})
	}
}

// BenchmarkOf is one forecast in the middle of a day.
func BenchmarkOf(b *testing.B) {
	day, _ := quota.ParseWindow("day", "America/Los_Angeles")
	w := newWorld(1, []quota.Limit{{Bucket: "default", Units: 10000, Headroom: 500, Window: day}})
	var in Bucket
	w.happen(func(day, percent int, b Bucket) {
		if day == 8 && percent == 25 {
			in = b
		}
	})
	for b.Loop() {
		Of(in)
	}
}

// BenchmarkManyTicks is one forecast with a schedule of every few seconds.
func BenchmarkManyTicks(b *testing.B) {
	in := Bucket{Name: "default", At: clock(b, "2026-11-21 08:00:01"), Limits: []quota.Limit{limit(b, 1_000_000, "day")},
		Entries: flow(clock(b, "2026-11-21 00:00:00"), clock(b, "2026-11-21 08:00:00"), time.Minute, 3),
		Lanes:   lanes(b, "@every 3s", "US", "GB", "DE", "FR", "IN", "BR", "AU", "CA")}
	for b.Loop() {
		Of(in)
	}
}

func table(title string, limits []quota.Limit) {
	type key struct {
		kind    string
		percent int
	}
	ours, line := map[key]*score{}, map[key]*score{}
	inside, dry, all := map[key]int{}, map[key]int{}, 0
	for seed := range uint64(months) {
		for _, a := range replay(firstSeed+seed, limits) {
			for _, k := range []key{{a.kind, a.percent}, {"all", a.percent}} {
				if ours[k] == nil {
					ours[k], line[k] = new(score), new(score)
				}
				ours[k].add(a.said.DryAt, a.actual, a.said.ResetAt)
				line[k].add(a.line, a.actual, a.said.ResetAt)
				if a.covers() {
					inside[k]++
				}
				if !a.actual.IsZero() {
					dry[k]++
				}
			}
			all++
		}
	}
	fmt.Printf("\n%s; %d months, %d forecasts. Error in minutes: mean, and what nine in ten are below.\nrunaway: it has not begun; run away: it has.\n", title, months, all)
	fmt.Printf("%-9s %5s %5s %5s   %-22s %-22s %s\n", "day", "at", "n", "dry", "forecast: min 90% wrong", "straight: min 90% wrong", "in the 80 % interval")
	for _, kind := range []string{"steady", "bursty", "runaway", "run away", "backfill", "all"} {
		for _, percent := range []int{25, 50, 75} {
			k := key{kind, percent}
			if ours[k] == nil {
				continue
			}
			n := len(ours[k].minutes)
			fmt.Printf("%-9s %3d %% %5d %5d   %-22s  %-22s  %3d %%\n", kind, percent, n, dry[k], ours[k], line[k], 100*inside[k]/n)
		}
	}
}

// covers reports whether what happened lies in the interval, with a minute for rounding.
func (a asked) covers() bool {
	early := a.said.Earliest.IsZero() && !a.actual.IsZero() || !a.actual.IsZero() && a.actual.Before(a.said.Earliest.Add(-time.Minute))
	late := !a.said.Latest.IsZero() && (a.actual.IsZero() || a.actual.After(a.said.Latest.Add(time.Minute)))
	return !early && !late
}
