package plan

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
)

// dryBy returns DryAt as a number; never is the largest.
func dryBy(at time.Time) int64 {
	if at.IsZero() {
		return never
	}
	return at.UnixMicro()
}

// unshared returns the bucket under a name that no lanes share, because with shares fewer units may
// last longer.
func unshared(b Bucket, name string) Bucket {
	b.Name = name
	for i := range b.Limits {
		b.Limits[i].Bucket = name
	}
	return b
}

// TestMonotone: more past, held or future spending never makes the bucket run dry later. Latest is
// not checked: with fewer units, fewer charges are averaged until the bucket is dry, so the
// interval is wider.
func TestMonotone(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := unshared(draws{r}.drawn(t), "search_list")
		less := ForecastOf(b)
		switch more := (draws{r}).n("more", 1, 300); (draws{r}).text("what", "spent", "aside",
			"prediction") {
		case "spent":
			b.Spent = join(b.Spent, spent(b.At.Add(-time.Minute), more))
		case "aside":
			b.reserve(more, 3*time.Hour)
		case "prediction":
			for i := range b.Lanes {
				b.Lanes[i].Pages += more
			}
		}
		f := ForecastOf(b)
		if dryBy(f.DryAt) > dryBy(less.DryAt) || dryBy(f.Earliest) > dryBy(less.Earliest) ||
			f.Remaining > less.Remaining {
			r.Fatalf("got %+v, with less spending %+v", f, less)
		}
	})
}

// TestSound: a forecast is consistent, and is the same for the same bucket.
func TestSound(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := draws{r}.drawn(t)
		f := ForecastOf(b)
		if !reflect.DeepEqual(f, ForecastOf(b)) {
			r.Fatal("a second forecast of the same bucket differs")
		}
		rises := slices.IsSorted([]int64{dryBy(f.Earliest), dryBy(f.DryAt), dryBy(f.Latest)})
		if !rises {
			r.Fatalf("%+v", f)
		}
		for i, at := range []time.Time{f.DryAt, f.Earliest, f.Latest, f.OpensAt} {
			opensLater := i == 3 && f.Verdict == Exhausted
			if !at.IsZero() && (at.Before(b.At) || at.After(f.ResetAt) && !opensLater) {
				r.Fatalf("%v is not between %v and %v", at, b.At, f.ResetAt)
			}
		}
		lasts := f.Verdict == Lasts || f.Verdict == Unused
		if lasts != f.DryAt.IsZero() || f.Lost.Pages > f.Scheduled.Pages ||
			f.Lost != f.LeftOut && lasts || f.Verdict == Exhausted &&
			f.OpensAt.IsZero() {
			r.Fatalf("%+v", f)
		}
	})
}

// TestNobodyWants: without demand nothing runs dry.
func TestNobodyWants(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := draws{r}.drawn(t)
		for i := range b.Spent {
			b.Spent[i].Labels = quota.Labels{quota.LabelJob: "trending"}
		}
		for i := range b.Lanes {
			b.Lanes[i].Pages = 0
		}
		f := ForecastOf(b)
		if f.Remaining > 0 && f.Verdict != Unused && (f.Verdict != Lasts || !f.Earliest.IsZero()) {
			r.Fatalf("%+v", f)
		}
	})
}

// draws makes the random choices of a test.
type draws struct{ *rapid.T }

func (r draws) n(what string, low, high int64) int64 {
	return rapid.Int64Range(low, high).Draw(r.T, what)
}

func (r draws) of(what string, values ...int64) int64 {
	return rapid.SampledFrom(values).Draw(r.T, what)
}

func (r draws) text(what string, values ...string) string {
	return rapid.SampledFrom(values).Draw(r.T, what)
}

func (r draws) minutes(what string, low, high int64) time.Duration {
	return time.Duration(r.n(what, low, high)) * time.Minute
}

// drawn returns a bucket that was never empty, at a random moment of a random history.
func (r draws) drawn(t *testing.T) Bucket {
	b := bucketAt(t, "2026-11-01 00:00:00", "800 day",
		r.text("spec", "0 */3 * * * BR AU", "*/20 * * * * BR AU", "30 7 * * * BR AU"))
	b.At = b.At.Add(r.minutes("now", 0, 48*60) + 17*time.Second)
	for _, text := range []string{"day", "24h", "2h"} {
		if r.n(text, 0, 1) == 1 {
			b.Limits = append(b.Limits, limit(t, r.n("units", 600, 2000), text))
		}
	}
	if len(b.Limits) > 1 {
		b.Limits = b.Limits[1:]
	}
	for i := range r.n("entries", 0, 30) {
		e := quota.Spent{At: b.At.Add(-r.minutes("age", 1, 48*60)), Units: r.n("units", 1, 15)}
		if i%2 == 0 {
			e.Labels = quota.Labels{quota.LabelJob: "trending"}
		}
		b.Spent = append(b.Spent, e)
	}
	b.Spent = join(b.Spent)
	for range r.n("reservations", 0, 2) {
		b.reserve(r.n("aside", 1, 100), r.minutes("ttl", 1, 20*60))
	}
	return b
}

// scenario returns a bucket at a random moment without unscheduled spending, with lanes that may
// want too many units.
func (r draws) scenario(t *testing.T) Bucket {
	b := bucketAt(t, "2026-10-31 07:00:03", "0 day", "")
	b.At = b.At.Add(r.minutes("now", 0, 48*60))
	b.Price = r.of("price", 1, 1, 3)
	wanted := int64(0)
	for i, region := range []string{"US", "GB", "DE", "FR"}[:r.n("lanes", 1, 4)] {
		spec := r.text("spec", "0 */3 * * *", "*/20 * * * *", "30 7,19 * * *", "5 * * * *",
			"*/10 9-17 * * *")
		l := lanesOf(t, spec, region)[0]
		l.Offset = time.Duration(r.of("offset", 0, 0, 5, 15, 600)*int64(1+i)) * time.Second
		l.Pages, l.Weight = r.n("pages", 1, 6), r.n("weight", 0, 3)
		l.Priority, l.Floor = r.of("priority", 0, 0, 0, 1), r.of("floor", 0, 0, 20, 60)
		wanted += l.Count(b.At, b.At.Add(24*time.Hour)) * l.Pages * b.Price
		b.Lanes = append(b.Lanes, l)
	}
	units := func(part int64) int64 { return max(1, wanted*part*r.n("per cent", 20, 140)/100/24) }
	b.Limits[0].Units = units(24)
	for i, part := range []int64{24, 12, 6, 2, 3, 8} {
		text := []string{"24h", "12h", "6h", "hour", "1h", "1m"}[i]
		if r.n(text, 0, 2) == 0 {
			b.Limits = append(b.Limits, limit(t, units(part), text))
		}
	}
	if r.n("another day", 0, 2) == 0 { // begins before the reset
		other, err := quota.ParseWindow("day", "UTC")
		must(t, err)
		b.Limits = append(b.Limits, quota.Limit{Bucket: "default", Units: units(24), Window: other})
	}
	if r.n("pace", 0, 3) == 0 {
		b.Paces = []quota.Limit{b.Limits[0]}
		b.Paces[0].Pace = &quota.Pace{Slack: r.n("slack", 0, 20)}
	}
	for range r.n("entries", 0, 60) {
		before := b.At.Truncate(time.Minute).Add(37*time.Second - r.minutes("age", 1, 30*60))
		l := b.Lanes[r.n("lane", 0, int64(len(b.Lanes)-1))]
		b.Spent = append(b.Spent, entry(l, before, r.n("units", 1, 1+wanted/60)))
	}
	b.Spent = join(b.Spent)
	for i, l := range b.Lanes { // a plan begins in the order of the list
		b.Spent = append(b.Spent, entry(l, b.At.Add(time.Duration(i-10)*100*time.Millisecond), 1))
	}
	if r.n("reservation", 0, 3) == 0 {
		b.reserve(wanted/10, r.minutes("ttl", 1, 20*60))
	}
	if r.n("suspended", 0, 5) == 0 {
		b.SuspendedUntil = b.At.Add(3 * time.Hour)
	}
	return b
}

// reserve adds a reservation without draws.
func (b *Bucket) reserve(units int64, ttl time.Duration) {
	b.Reservations = append(b.Reservations, quota.Reservation{
		ID: fmt.Sprint("r", 1+len(b.Reservations)), Units: units, Left: units,
		CreatedAt: b.At.Add(-time.Hour), ExpiresAt: b.At.Add(ttl)})
}
