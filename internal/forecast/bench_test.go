package forecast

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// months are replayed so that the figures are more than luck, from a seed on that was not looked at
// when the constants of the package were chosen.
const (
	months    = 8
	firstSeed = 1000
)

// BenchmarkForecast replays months and prints how far the forecast was off, beside the straight
// line, and in how many of the days its interval of eight in ten holds: first months of four kinds
// of days, then months of one kind each.
func BenchmarkForecast(b *testing.B) {
	calendar := theDay(b)
	both := append(calendar, calendar[0])
	both[1].Window = quota.Sliding(24 * time.Hour)
	for range b.N {
		table("limit: the day", mixed, calendar)
		table("limits: the day and 24h", mixed, both)
		for _, kind := range append([]string{"office"}, unlooked...) {
			table("limit: the day", []string{kind}, calendar)
		}
		for _, kind := range append([]string{"office"}, unlooked...) {
			table("limits: the day and 24h", []string{kind}, both)
		}
	}
}

// theDay is the limit of the upstream's day.
func theDay(t testing.TB) []quota.Limit {
	day := limit(t, 10000, "day")
	day.Headroom = 500
	return []quota.Limit{day}
}

// BenchmarkOf is one forecast in the middle of a day.
func BenchmarkOf(b *testing.B) {
	w := newWorld(1, mixed, theDay(b))
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

// BenchmarkManyEntries is one forecast with 10,000 entries a day, a third of them unscheduled, and
// two limits.
func BenchmarkManyEntries(b *testing.B) {
	at := clock(b, "2026-11-21 20:00:00")
	in := Bucket{Name: "default", Price: 1, At: at, Limits: []quota.Limit{limit(b, 20_000, "day"), limit(b, 20_000, "24h")},
		Lanes: lanes(b, "*/5 * * * *", "US", "GB", "DE", "FR", "IN", "BR", "AU", "CA")}
	from := at.Add(-Memory(in.Limits))
	in.Spent = flow(from, at, 13*time.Second, 1)
	for i := range in.Spent {
		in.Spent[i].Labels = quota.Labels{quota.LabelJob: "trending"}
	}
	in.Spent = join(in.Spent, flow(from, at, 26*time.Second, 1))
	for b.Loop() {
		Of(in)
	}
}

// BenchmarkManyTicks is one forecast with a schedule of every few seconds.
func BenchmarkManyTicks(b *testing.B) {
	in := Bucket{Name: "default", Price: 1, At: clock(b, "2026-11-21 08:00:01"), Limits: []quota.Limit{limit(b, 1_000_000, "day")},
		Spent: flow(clock(b, "2026-11-21 00:00:00"), clock(b, "2026-11-21 08:00:00"), time.Minute, 3),
		Lanes: lanes(b, "@every 3s", "US", "GB", "DE", "FR", "IN", "BR", "AU", "CA")}
	for b.Loop() {
		Of(in)
	}
}

// replayed is so many months, each on a processor of its own.
func replayed(months int, kinds []string, limits []quota.Limit) []asked {
	each := make([][]asked, months)
	var wait sync.WaitGroup
	for i := range each {
		wait.Go(func() { each[i] = replay(firstSeed+uint64(i), kinds, limits) })
	}
	wait.Wait()
	return slices.Concat(each...)
}

func table(title string, kinds []string, limits []quota.Limit) {
	type key struct {
		kind    string
		percent int
	}
	ours, line := map[key]*score{}, map[key]*score{}
	inside, dry := map[key]int{}, map[key]int{}
	all := replayed(months, kinds, limits)
	for _, a := range all {
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
	}
	fmt.Printf("\n%s; %d months of %s days, %d forecasts. Error in minutes: mean, and what nine in ten are below.\n", title, months,
		strings.Join(kinds, ", "), len(all))
	fmt.Printf("%-9s %5s %5s %5s   %-22s %-22s %s\n", "day", "at", "n", "dry", "forecast: min 90% wrong", "straight: min 90% wrong", "in the 80 % interval")
	rows := []string{"all"}
	if len(kinds) > 1 {
		fmt.Println("runaway: it has not begun; run away: it has.")
		rows = []string{"steady", "bursty", "runaway", "run away", "backfill", "all"}
	}
	for _, kind := range rows {
		for _, percent := range []int{25, 50, 75} {
			k := key{kind, percent}
			if ours[k] == nil {
				continue
			}
			n := len(ours[k].minutes)
			fmt.Printf("%-9s %3d %% %5d %5d   %-22s  %-22s  %3d %%\n", kind, percent, n, dry[k], ours[k], line[k], (100*inside[k]+n/2)/n)
		}
	}
}

// covers reports whether what happened lies in the interval, with a minute for rounding.
func (a asked) covers() bool {
	early := a.said.Earliest.IsZero() && !a.actual.IsZero() || !a.actual.IsZero() && a.actual.Before(a.said.Earliest.Add(-time.Minute))
	late := !a.said.Latest.IsZero() && (a.actual.IsZero() || a.actual.After(a.said.Latest.Add(time.Minute)))
	return !early && !late
}

// BenchmarkShort is one forecast of a day on which shares leave runs out of 8 lanes: where nothing
// is unscheduled, where something is, and where the ticks are too many for points of their own.
func BenchmarkShort(b *testing.B) {
	at := clock(b, "2026-11-21 08:00:01")
	some := flow(at.Add(-48*time.Hour), at, time.Minute, 1)
	for _, c := range []struct {
		name, spec string
		units      int64
		entries    []quota.Spent
	}{{"certain", "*/10 * * * *", 4000, nil}, {"unscheduled", "*/10 * * * *", 4000, some}, {"crowd", "@every 10s", 10_000, some}} {
		b.Run(c.name, func(b *testing.B) {
			in := Bucket{Name: "default", Price: 1, At: at, Reset: window(b, "day"), Limits: []quota.Limit{limit(b, c.units, "day"), limit(b, c.units, "24h")},
				Spent: c.entries, Lanes: staggered(lanes(b, c.spec, "US", "GB", "DE", "FR", "IN", "BR", "AU", "CA"), 30*time.Second)}
			for b.Loop() {
				Of(in)
			}
		})
	}
}
