package quotatest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// testLongerWindow: a window that is configured later finds the entries it needs, if they were
// still kept.
func testLongerWindow(t *testing.T, h Harness) {
	l, credential := h.Open(t), newCredential()
	charge := func(units int64, window time.Duration) quota.Decision {
		t.Helper()
		d, err := l.Charge(t.Context(), quota.Charge{
			Credential: credential, ID: quota.NewID(time.Now()), Costs: []quota.Cost{{Bucket: "default", Units: units}},
			Limits: []quota.Limit{{Bucket: "default", Units: 60, Window: quota.Sliding(window)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	h.SetNow(t, epoch)
	for range 50 {
		charge(1, hours(24))
	}
	h.SetNow(t, epoch.Add(hours(80)))
	charge(1, hours(168))
	if d := charge(10, hours(168)); d.Allowed || d.Remaining["default"] != 9 {
		t.Errorf("61 units in a week of 60: %+v", d)
	}
}

// testShorterWindow: a charge under a short window alone does not forget what a longer one needs.
func testShorterWindow(t *testing.T, h Harness) {
	l, credential := h.Open(t), newCredential()
	charge := func(after, window time.Duration, units int64) quota.Decision {
		t.Helper()
		h.SetNow(t, epoch.Add(after))
		d, err := l.Charge(t.Context(), quota.Charge{
			Credential: credential, ID: quota.NewID(time.Now()), Costs: []quota.Cost{{Bucket: "default", Units: units}},
			Limits: []quota.Limit{{Bucket: "default", Units: 60, Window: quota.Sliding(window)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	charge(0, hours(168), 50)
	for i := range int64(5) { // enough to forget all that is old
		charge(hours(80+i), hours(1), 1)
	}
	if d := charge(hours(120), hours(168), 6); d.Allowed {
		t.Errorf("61 units in a week of 60: %+v", d)
	}
}

// testCancelFarBack: a charge is taken back while at most 10,000 entries came after it, on every
// ledger.
func testCancelFarBack(t *testing.T, h Harness) {
	l, credential := h.Open(t), newCredential()
	if _, memory := l.(*Model); memory {
		return // it has all day, and needs it
	}
	h.SetNow(t, epoch)
	limits := []quota.Limit{{Bucket: "default", Units: 100_000, Window: quota.Sliding(hours(24))}}
	charge := func(id string) (quota.Charge, quota.Decision) {
		c := quota.Charge{Credential: credential, ID: id, Costs: []quota.Cost{{Bucket: "default", Units: 1}}, Limits: limits}
		d, err := l.Charge(t.Context(), c)
		if err != nil || !d.Allowed {
			t.Errorf("charge: %+v, %v", d, err)
		}
		return c, d
	}
	tooFar, tooFarDecision := charge("tooFar")
	last, lastDecision := charge("last")
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			for j := range 100 {
				charge(fmt.Sprintf("later-%d-%d", i, j))
			}
		})
	}
	all.Wait()
	if err := l.Cancel(t.Context(), tooFar, tooFarDecision); errorName(err) != "no_entry" {
		t.Errorf("with 10,001 entries after it: %v", err)
	}
	if err := l.Cancel(t.Context(), last, lastDecision); err != nil {
		t.Errorf("with 10,000 entries after it: %v", err)
	}
	u, err := l.Usage(t.Context(), credential, limits)
	if err != nil || u.Buckets[0].Limits[0].Used != 10_001 {
		t.Errorf("%+v, %v; want 10,001 units used", u, err)
	}
}

// testCancelTheOnlyOne: a log that becomes empty, because all that was before has been forgotten,
// can be charged again.
func testCancelTheOnlyOne(t *testing.T, h Harness) {
	l, credential := h.Open(t), newCredential()
	charge := func(id string, units int64) (quota.Charge, quota.Decision) {
		c := quota.Charge{Credential: credential, ID: id, Costs: []quota.Cost{{Bucket: "default", Units: units}}, Limits: []quota.Limit{dayLimit}}
		return c, must(t, l, c)
	}
	h.SetNow(t, epoch)
	charge("forgotten", 60)
	h.SetNow(t, epoch.Add(hours(100)))
	c, d := charge("cancelled", 70)
	if err := l.Cancel(t.Context(), c, d); err != nil {
		t.Fatal(err)
	}
	if list, err := l.Entries(t.Context(), quota.Query{Credential: credential, Bucket: "default"}); err != nil || len(list) != 0 {
		t.Fatalf("%+v, %v; want an empty log", list, err)
	}
	charge("again", 100)
}

// testClockBack: what was set aside at a later time does not come back to life, nor count double,
// when the clock goes back.
func testClockBack(t *testing.T, h Harness) {
	l, credential := h.Open(t), newCredential()
	limits := []quota.Limit{{Bucket: "default", Units: 100, Window: quota.Sliding(hours(24))}}
	h.SetNow(t, epoch)
	first, err := l.Charge(t.Context(), quota.Charge{Credential: credential, ID: "first",
		Costs: []quota.Cost{{Bucket: "default", Units: 100}}, Limits: limits})
	if err != nil || !first.Allowed {
		t.Fatal(first, err)
	}
	h.SetNow(t, epoch.Add(hours(25)))
	r := quota.Reserve{Credential: credential, ID: "default.later", Units: 100, Limits: limits, TTL: hours(48)}
	if d, err := l.Reserve(t.Context(), r); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	h.SetNow(t, epoch.Add(time.Minute))
	d, err := l.Commit(t.Context(), quota.Commit{Credential: credential, Reservation: r.ID, ID: "second", Units: quota.AllUnits, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	if apart := d.At.Sub(first.At); apart < hours(24) {
		t.Errorf("200 units within %v under 100 in 24 h", apart)
	}
}

// testLoweredLimit: the answer to an idempotency key stays what it was.
func testLoweredLimit(t *testing.T, h Harness) {
	l := h.Open(t)
	h.SetNow(t, epoch)
	c := quota.Charge{Credential: newCredential(), ID: "first", Key: "once", Costs: []quota.Cost{{Bucket: "default", Units: 50}}}
	for _, units := range []int64{100, 10} {
		c.Limits = []quota.Limit{{Bucket: "default", Units: units, Window: quota.Sliding(time.Hour)}}
		d, err := l.Charge(t.Context(), c)
		if err != nil || !d.Allowed || d.Entry != "first" || d.Replayed != (units == 10) {
			t.Errorf("limit %d: %+v, %v", units, d, err)
		}
	}
	c.Key = "twice"
	if d, err := l.Charge(t.Context(), c); err == nil || !d.Never {
		t.Errorf("another key under the lowered limit: %+v, %v", d, err)
	}
}
