package quotatest

import (
	"context"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// testUsageAtOneMoment: buckets whose newest entries lie on two sides of a reset, as after a clock
// that was ahead for a while, are reported as of one moment: the later one, as a charge on both
// would be decided.
func testUsageAtOneMoment(t *testing.T, h Harness) {
	day, err := quota.ParseWindow("day", "America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	s := newSubject(t, h)
	midnight, end := day.Bounds(epoch)
	one := quota.Limit{Bucket: "default", Units: 100, Window: day}
	two := quota.Limit{Bucket: "search_list", Units: 100, Window: day}
	charge := func(now time.Time, limit quota.Limit, units int64) {
		h.SetNow(t, now)
		c := s.newCharge(units)
		c.Costs[0].Bucket, c.Limits = limit.Bucket, []quota.Limit{limit}
		s.must(c)
	}
	charge(midnight.Add(time.Minute), one, 30)
	charge(end.Add(time.Hour), two, 7)       // the clock is ahead
	charge(end.Add(-10*time.Minute), one, 5) // and is right again
	want := func(what string, got []int64, want ...int64) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d used, want %d", what, got, want)
		}
	}
	want("the bucket alone", s.used(one), 35)
	want("both, of the later day", s.used(one, two), 0, 7)
	want("both, the other way round", s.used(two, one), 7, 0)
	h.SetNow(t, end)
	want("both, at the reset", s.used(one, two), 0, 7)
}

// testSpendAgain: a call that was charged once, under its key, is not given back by who comes with
// the key again.
func testSpendAgain(t *testing.T, h Harness) {
	s := newSubject(t, h, dayLimit)
	b := &quota.Budget{Ledger: s.ledger, Credential: s.credential, Limits: s.limits}
	var cancels []func(context.Context) error
	for _, replayed := range []bool{false, true} {
		call := quota.Call{Bucket: "default", Units: 10, Key: "once"}
		d, cancel, err := b.Spend(t.Context(), call)
		if err != nil || !d.Allowed || d.Replayed != replayed {
			t.Fatalf("%+v, %v", d, err)
		}
		cancels = append(cancels, cancel)
	}
	for _, c := range []struct {
		nth  int
		used int64
	}{{1, 10}, {0, 0}} {
		if err := cancels[c.nth](t.Context()); err != nil || s.used(dayLimit)[0] != c.used {
			t.Errorf("cancelled by caller %d: %v, %d units used, want %d", c.nth, err,
				s.used(dayLimit)[0], c.used)
		}
	}
}
