package quotatest

import (
	"context"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// testUsageAtOneMoment: buckets whose newest entries lie on two sides of a reset, as after a clock
// that was ahead for a while, are told of as of one moment: the later one, as a charge on both
// would be decided.
func testUsageAtOneMoment(t *testing.T, h Harness) {
	l, credential := h.Open(t), newCredential()
	day, err := quota.ParseWindow("day", "America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	midnight, end := day.Bounds(epoch)
	limits := []quota.Limit{
		{Bucket: "default", Units: 100, Window: day},
		{Bucket: "search_list", Units: 100, Window: day},
	}
	charge := func(now time.Time, i int, units int64) {
		h.SetNow(t, now)
		must(
			t,
			l,
			quota.Charge{Credential: credential, ID: quota.NewID(now), Limits: limits[i : i+1],
				Costs: []quota.Cost{{Bucket: limits[i].Bucket, Units: units}}},
		)
	}
	usage := func(limits []quota.Limit) (used []int64) {
		t.Helper()
		u, err := l.Usage(context.Background(), credential, limits)
		if err != nil {
			t.Fatalf("usage: %v", err)
		}
		for _, b := range u.Buckets {
			used = append(used, b.Limits[0].Used)
		}
		return used
	}
	charge(midnight.Add(time.Minute), 0, 30)
	charge(end.Add(time.Hour), 1, 7)       // the clock is ahead
	charge(end.Add(-10*time.Minute), 0, 5) // and is right again
	if got := usage(limits[:1]); got[0] != 35 {
		t.Errorf("the bucket alone: %d used, want 35", got[0])
	}
	if got := usage(limits); got[0] != 0 || got[1] != 7 {
		t.Errorf("both: %d used, want 0 and 7, of the later day", got)
	}
	if got := usage([]quota.Limit{limits[1], limits[0]}); got[0] != 7 || got[1] != 0 {
		t.Errorf("both, the other way round: %d used, want 7 and 0", got)
	}
	h.SetNow(t, end)
	if got := usage(limits); got[0] != 0 || got[1] != 7 {
		t.Errorf("both, at the reset: %d used, want 0 and 7", got)
	}
}

// testSpendAgain: a call that was charged once, under its key, is not given back by who comes with
// the key again.
func testSpendAgain(t *testing.T, h Harness) {
	ctx, l := context.Background(), h.Open(t)
	h.SetNow(t, epoch)
	b := &quota.Budget{Ledger: l, Credential: newCredential(), Limits: []quota.Limit{dayLimit}}
	call := quota.Call{Bucket: "default", Units: 10, Key: "once"}
	used := func() int64 {
		t.Helper()
		u, err := b.Usage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return u.Buckets[0].Limits[0].Used
	}
	var cancels []func(context.Context) error
	for _, replayed := range []bool{false, true} {
		d, cancel, err := b.Spend(ctx, call)
		if err != nil || !d.Allowed || d.Replayed != replayed {
			t.Fatalf("%+v, %v", d, err)
		}
		cancels = append(cancels, cancel)
	}
	if err := cancels[1](ctx); err != nil || used() != 10 {
		t.Errorf(
			"cancelled by the second: %v, %d units used, want the 10 of the first",
			err,
			used(),
		)
	}
	if err := cancels[0](ctx); err != nil || used() != 0 {
		t.Errorf("cancelled by the first: %v, %d units used, want none", err, used())
	}
}
