package plan

import (
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
