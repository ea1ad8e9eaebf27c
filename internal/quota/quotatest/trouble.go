package quotatest

import (
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

// testClockBack: what was set aside at a later time does not come back to life, nor count double,
// when the clock goes back.
func testClockBack(t *testing.T, h Harness) {
	s := newSubject(t, h, dayLimit)
	_, first := s.charge(100)
	s.at(hours(25))
	s.reserve("default.later", 100, hours(48))
	s.at(time.Minute)
	d, err := s.ledger.Commit(t.Context(), quota.Commit{Credential: s.credential,
		Reservation: "default.later", ID: "second", Units: quota.AllUnits, Limits: s.limits})
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
