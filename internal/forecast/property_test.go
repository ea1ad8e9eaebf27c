package forecast

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
)

// drawn is a bucket that was never empty, at a random moment of a random history.
func drawn(t *testing.T, r *rapid.T) Bucket {
	at := clock(t, "2026-11-01 00:00:00").Add(time.Duration(rapid.Int64Range(0, 48*3600).Draw(r, "now")) * time.Second)
	b := Bucket{Name: "default", Price: 1, At: at, Reset: window(t, "day"), Lanes: lanes(t, rapid.SampledFrom([]string{"0 */3 * * *", "*/20 * * * *", "30 7 * * *"}).Draw(r, "spec"), "BR", "AU")}
	for _, text := range []string{"day", "24h", "2h"} {
		if rapid.Bool().Draw(r, text) {
			b.Limits = append(b.Limits, limit(t, rapid.Int64Range(600, 2000).Draw(r, "units"), text))
		}
	}
	if len(b.Limits) == 0 {
		b.Limits = []quota.Limit{limit(t, 800, "day")}
	}
	for i := range rapid.IntRange(0, 30).Draw(r, "entries") {
		e := quota.Spent{At: at.Add(-time.Duration(rapid.Int64Range(1, 48*3600).Draw(r, "age")) * time.Second),
			Units: rapid.Int64Range(1, 15).Draw(r, "units")}
		if i%2 == 0 {
			e.Labels = quota.Labels{quota.LabelJob: "trending"}
		}
		b.Spent = append(b.Spent, e)
	}
	b.Spent = join(b.Spent)
	for range rapid.IntRange(0, 2).Draw(r, "reservations") {
		units := rapid.Int64Range(1, 100).Draw(r, "aside")
		b.Reservations = append(b.Reservations, quota.Reservation{Units: units, Left: units, CreatedAt: at.Add(-time.Hour),
			ExpiresAt: at.Add(time.Duration(rapid.Int64Range(1, 20*3600).Draw(r, "ttl")) * time.Second)})
	}
	return b
}

// dryBy is DryAt as a number; never is the largest.
func dryBy(at time.Time) int64 {
	if at.IsZero() {
		return never
	}
	return at.UnixMicro()
}

// unshared is the bucket under a name of which nothing is shared: shares keep units for later, and
// may make them last longer the fewer there are.
func unshared(b Bucket, name string) Bucket {
	b.Name = name
	for i := range b.Limits {
		b.Limits[i].Bucket = name
	}
	return b
}

// The more was spent, or is set aside, or will be asked for, the sooner it is gone.
func TestMonotone(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := unshared(drawn(t, r), "search_list")
		less := Of(b)
		switch more := rapid.Int64Range(1, 300).Draw(r, "more"); rapid.SampledFrom([]string{"spent", "aside", "asked"}).Draw(r, "what") {
		case "spent":
			b.Spent = join(b.Spent, spent(b.At.Add(-time.Minute), more))
		case "aside":
			b.Reservations = append(b.Reservations, quota.Reservation{Units: more, Left: more, CreatedAt: b.At, ExpiresAt: b.At.Add(3 * time.Hour)})
		case "asked":
			for i := range b.Lanes {
				b.Lanes[i].Pages += more
			}
		}
		f := Of(b)
		for _, pair := range [][2]time.Time{{f.DryAt, less.DryAt}, {f.Earliest, less.Earliest}, {f.Latest, less.Latest}} {
			if dryBy(pair[0]) > dryBy(pair[1]) {
				r.Fatalf("dry %v, before %v\n%s\n%s", pair[0], pair[1], f.Text(), less.Text())
			}
		}
		if f.Chance < less.Chance || f.Remaining > less.Remaining {
			r.Fatalf("chance %v, before %v; remaining %d, before %d", f.Chance, less.Chance, f.Remaining, less.Remaining)
		}
	})
}

// Whatever is told holds together, and the same is told of the same.
func TestSound(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := drawn(t, r)
		f := Of(b)
		if !reflect.DeepEqual(f, Of(b)) {
			r.Fatal("told differently the second time")
		}
		if dryBy(f.Earliest) > dryBy(f.DryAt) || dryBy(f.DryAt) > dryBy(f.Latest) || f.Chance < 0 || f.Chance > 1 {
			r.Fatalf("%+v", f)
		}
		for i, at := range []time.Time{f.DryAt, f.Earliest, f.Latest, f.OpensAt} {
			opensLater := i == 3 && f.Verdict == Exhausted
			if !at.IsZero() && (at.Before(b.At) || at.After(f.ResetAt) && !opensLater) {
				r.Fatalf("%v is not between %v and %v", at, b.At, f.ResetAt)
			}
		}
		if (f.Verdict == Lasts) != f.DryAt.IsZero() || f.Lost.Pages > f.Scheduled.Pages || f.Lost != f.LeftOut && f.Verdict == Lasts ||
			f.Verdict == Exhausted && f.OpensAt.IsZero() {
			r.Fatalf("%+v", f)
		}
	})
}

// Who wants nothing runs out of nothing.
func TestNobodyWants(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := drawn(t, r)
		for i := range b.Spent {
			b.Spent[i].Labels = quota.Labels{quota.LabelJob: "trending"}
		}
		for i := range b.Lanes {
			b.Lanes[i].Pages = 0
		}
		if f := Of(b); f.Remaining > 0 && (f.Verdict != Lasts || f.Chance != 0) {
			r.Fatalf("%+v", f)
		}
	})
}
