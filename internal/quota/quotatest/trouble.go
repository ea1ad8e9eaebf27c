package quotatest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// testLongerWindow: a window that is configured later finds the entries it needs, if they were
// still kept.
func testLongerWindow(t *testing.T, h Harness) {
	s := newSubject(t, h, within(60, hours(24)))
	for range 50 {
		s.charge(1)
	}
	s.at(hours(80))
	s.limits = []quota.Limit{within(60, hours(168))}
	s.charge(1)
	if d := s.ask(s.newCharge(10)); d.Allowed || d.Remaining["default"] != 9 {
		t.Errorf("61 units in a week of 60: %+v", d)
	}
}

// testShorterWindow: a charge under a short window alone does not forget what a longer one needs.
func testShorterWindow(t *testing.T, h Harness) {
	week, hour := []quota.Limit{within(60, hours(168))}, []quota.Limit{within(60, time.Hour)}
	s := newSubject(t, h, week...)
	s.charge(50)
	s.limits = hour
	for i := range int64(5) { // enough to forget all that is old
		s.at(hours(80 + i))
		s.charge(1)
	}
	s.at(hours(120))
	s.limits = week
	if d := s.ask(s.newCharge(6)); d.Allowed {
		t.Errorf("61 units in a week of 60: %+v", d)
	}
}

// testCancelFarBack: a charge is taken back while at most 10,000 entries came after it, on every
// ledger.
func testCancelFarBack(t *testing.T, h Harness) {
	s := newSubject(t, h, within(100_000, hours(24)))
	if _, memory := s.ledger.(*Model); memory {
		return // it has all day, and needs it
	}
	tooFar, tooFarDecision := s.charge(1)
	last, lastDecision := s.charge(1)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range 100 {
				s.charge(1)
			}
		})
	}
	all.Wait()
	if err := s.ledger.Cancel(t.Context(), tooFar, tooFarDecision); errorName(err) != "no_entry" {
		t.Errorf("with 10,001 entries after it: %v", err)
	}
	s.cancel(last, lastDecision)
	if used := s.used(s.limits...)[0]; used != 10_001 {
		t.Errorf("%d units are used, want 10,001", used)
	}
}

// testAdjustFarBack: a correction that would write very many entries again is refused, and so is
// one of as many entries.
func testAdjustFarBack(t *testing.T, h Harness) {
	s := newSubject(t, h, within(100_000, hours(24)))
	if _, memory := s.ledger.(*Model); memory {
		return // it has all day, and needs it
	}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range 100 {
				s.charge(1)
			}
		})
	}
	all.Wait()
	s.at(time.Second)
	s.charge(1)
	adjust := func(units int64, until time.Time) string {
		t.Helper()
		_, err := s.ledger.Adjust(t.Context(), quota.Adjust{Credential: s.credential,
			ID: quota.NewID(time.Now()), Bucket: "default", Units: units, Until: until,
			Limits: s.limits})
		return errorName(err)
	}
	first := s.log("default")[0].At
	if name := adjust(1, first.Add(-time.Microsecond)); name != "no_entry" {
		t.Errorf("with 10,001 entries after it: %q", name)
	}
	if name := adjust(1, first); name != "no_entry" { // the stamp before is free
		t.Errorf("with 10,001 entries after the stamp that is free: %q", name)
	}
	if name := adjust(-10_001, time.Time{}); name != "no_entry" {
		t.Errorf("off 10,001 entries: %q", name)
	}
	if name := adjust(-2, first.Add(time.Microsecond)); name != "no_entry" {
		t.Errorf("off the first two: %q", name)
	}
	if name := adjust(-1, first.Add(time.Microsecond)); name != "" {
		t.Errorf("off the second: %q", name)
	}
	if name := adjust(-10_000, time.Time{}); name != "" {
		t.Errorf("off all that are left: %q", name)
	}
	if list := s.log("default"); len(list) != 0 {
		t.Errorf("%d entries are left", len(list))
	}
}

// testCancelTheOnlyOne: a log that becomes empty, because all that was before has been forgotten,
// can be charged again.
func testCancelTheOnlyOne(t *testing.T, h Harness) {
	s := newSubject(t, h, dayLimit)
	s.charge(60) // is forgotten
	s.at(hours(100))
	s.cancel(s.charge(70))
	if list := s.log("default"); len(list) != 0 {
		t.Fatalf("%+v; want an empty log", list)
	}
	s.charge(100)
}

// testAdjustTheOnlyOne: so can one from which a correction took all that was left.
func testAdjustTheOnlyOne(t *testing.T, h Harness) {
	s := newSubject(t, h, dayLimit)
	s.charge(60) // is forgotten
	s.at(hours(100))
	s.charge(70)
	_, err := s.ledger.Adjust(t.Context(), quota.Adjust{Credential: s.credential, ID: "a",
		Bucket: "default", Units: -70, After: epoch.Add(hours(1))})
	if list := s.log("default"); err != nil || len(list) != 0 {
		t.Fatalf("%+v, %v; want an empty log", list, err)
	}
	s.charge(100)
}

// testClockBack: what was set aside at a later time does not come back to life, nor count double,
// when the clock goes back.
func testClockBack(t *testing.T, h Harness) {
	s := newSubject(t, h, dayLimit)
	_, first := s.charge(100)
	s.at(hours(24))
	s.reserve("default.later", 100, hours(48))
	s.at(time.Hour)
	d, err := s.ledger.Settle(t.Context(), quota.Settle{Credential: s.credential,
		Reservation: "default.later", ID: "second", Limits: s.limits})
	if err != nil {
		t.Fatal(err)
	}
	if apart := d.At.Sub(first.At); apart < hours(24) {
		t.Errorf("200 units within %v under 100 in 24 h", apart)
	}
}

// testLoweredLimit: the answer to an idempotency key stays what it was.
func testLoweredLimit(t *testing.T, h Harness) {
	s := newSubject(t, h)
	c := s.newCharge(50)
	c.Key = "once"
	for _, units := range []int64{100, 10} {
		c.Limits = []quota.Limit{within(units, time.Hour)}
		if d := s.must(c); d.Entry != c.ID || d.Replayed != (units == 10) {
			t.Errorf("limit %d: %+v", units, d)
		}
	}
	c.Key = "twice"
	if d, err := s.ledger.Charge(t.Context(), c); err == nil || !d.Never {
		t.Errorf("another key under the lowered limit: %+v, %v", d, err)
	}
}

// testUsageOfNothing: without limits, a ledger tells the time.
func testUsageOfNothing(t *testing.T, h Harness) {
	s := newSubject(t, h)
	h.SetNow(t, epoch)
	u, err := s.ledger.Usage(t.Context(), s.credential, nil)
	if err != nil || !u.At.Equal(epoch) || len(u.Buckets) != 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

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
