package plan

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// BenchmarkYear plays 365 days of 8 and of 110 regions every 10 minutes, 4 pages each, with enough
// units and with too few.
func BenchmarkYear(b *testing.B) {
	var all []string
	for i := range 110 {
		all = append(all, string([]byte{byte('A' + i/26), byte('A' + i%26)}))
	}
	for _, c := range []struct {
		name    string
		regions []string
		stagger time.Duration
		units   int64
		paced   bool
	}{
		{"fits", eight, time.Minute, 10_000, false},
		{"paced", eight, time.Minute, 10_000, true},
		{"short", eight, time.Minute, 2_500, false},
		{"all fit", all, 5 * time.Second, 100_000, false},
		{"all short", all, 5 * time.Second, 30_000, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := Plan{Lanes: lanes(b, "*/10 * * * *", 4, c.stagger, c.regions...), Price: price,
				Reset: day(b, los), Step: time.Hour,
				From: clock(b, "2026-01-01 08:00:00"), To: clock(b, "2027-01-01 08:00:00"),
				Limits: []quota.Limit{sliding(c.units, 24*time.Hour), daily(b, c.units, los)}}
			if c.paced {
				p.Paces = []quota.Limit{p.Limits[1]}
				p.Paces[0].Pace = &quota.Pace{Slack: 250}
			}
			for b.Loop() {
				r := p.Execute()
				if r.Runs != int64(365*24*6*len(c.regions)) {
					b.Fatal(r.Runs)
				}
				b.ReportMetric(float64(r.Lost()), "lost")
			}
		})
	}
}

// BenchmarkSuggest finds the tightest schedule of 8 regions, over a year.
func BenchmarkSuggest(b *testing.B) {
	p := Plan{Lanes: lanes(b, "*/10 * * * *", 4, time.Minute, eight...), Price: price,
		Reset: day(b, los), From: clock(b, "2026-01-01 08:00:00"),
		To: clock(b, "2026-01-08 08:00:00"), Limits: []quota.Limit{sliding(9500, 24*time.Hour),
			daily(b, 9500, los)}}
	for b.Loop() {
		if _, ok := p.Suggest(b.Context(), Wish{Zone: time.UTC, Share: math.Inf(1)}); !ok {
			b.Fatal("nothing fits")
		}
	}
}

var (
	months    = flag.Int("months", 8, "of each kind that BenchmarkForecast replays")
	firstSeed = flag.Int("seed", 5000, "of the first of them")
)

// BenchmarkForecast replays months. For each kind of day, with one limit and with two, it prints
// the error of the forecast in minutes at 25, 50 and 75 % of the day, and how many of the days
// lay in the eight-in-ten interval.
func BenchmarkForecast(b *testing.B) {
	both := dayAnd24h(b)
	for range b.N {
		for _, limits := range [][]quota.Limit{both[:1], both} {
			fmt.Printf("%d limits, %d months of each kind\n", len(limits), *months)
			for _, kinds := range kinds {
				fmt.Println(row(replayed(b, kinds, limits), kinds))
			}
		}
	}
}

func row(all []prediction, kinds []string) string {
	text := fmt.Sprintf("%-31s %5d", strings.Join(kinds, ","), len(all))
	for _, percent := range []int{25, 50, 75} {
		n, off := 0.0, 0.0
		for _, a := range all {
			if a.percent == percent {
				n, off = n+1, off+a.off(a.said.DryAt)
			}
		}
		text += fmt.Sprintf(" %4.0f", off/n)
	}
	return text + fmt.Sprintf("   %.0f %%", 100*coverage(all))
}

// replayed replays several months in parallel.
func replayed(t testing.TB, kinds []string, limits []quota.Limit) []prediction {
	each := make([][]prediction, *months)
	var wait sync.WaitGroup
	for i := range each {
		wait.Go(func() { each[i] = replay(t, uint64(*firstSeed+i), kinds, limits) })
	}
	wait.Wait()
	return slices.Concat(each...)
}

const regions = " US GB DE FR IN BR AU CA"

// dayAnd24h returns a limit for the upstream's day, and the same limit for any 24 hours.
func dayAnd24h(t testing.TB) []quota.Limit {
	both := []quota.Limit{limit(t, 10000, "day"), limit(t, 10000, "24h")}
	both[0].Headroom, both[1].Headroom = 500, 500
	return both
}

// BenchmarkOf computes a forecast of an ordinary day: 8 regions every half hour, and 5
// unscheduled units a minute for four days. A daemon computes one every minute, within 50 ms of
// CPU time.
func BenchmarkOf(b *testing.B) {
	const at = "2026-11-21 18:00:01"
	in := bucketAt(b, at, "10000 day, 10000 24h", "*/30 * * * *"+regions,
		flow(clock(b, at).Add(-96*time.Hour), clock(b, at), time.Minute, 5))
	for b.Loop() {
		ForecastOf(in)
	}
}

// BenchmarkShort computes a forecast of a day on which shares leave out runs of 8 lanes: without
// and with unscheduled spending, and with too many ticks for separate points.
func BenchmarkShort(b *testing.B) {
	const at = "2026-11-21 08:00:01"
	some := flow(clock(b, at).Add(-48*time.Hour), clock(b, at), time.Minute, 1)
	for _, c := range []struct {
		name, limits, spec string
		spent              []quota.Spent
	}{
		{"certain", "4000 day, 4000 24h", "*/10 * * * *", nil},
		{"unscheduled", "4000 day, 4000 24h", "*/10 * * * *", some},
		{"crowd", "10000 day, 10000 24h", "@every 10s", some},
	} {
		b.Run(c.name, func(b *testing.B) {
			in := bucketAt(b, at, c.limits, c.spec+regions, c.spent)
			staggered(in.Lanes, 30*time.Second)
			for b.Loop() {
				ForecastOf(in)
			}
		})
	}
}
