package quotatest

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// testObservedLimit: a limit that is only observed denies nothing and leaves room for anything; it
// is named where nothing else denies.
func testObservedLimit(t *testing.T, h Harness) {
	soft, hard := within(5, time.Hour), within(20, hours(24))
	soft.Observe = true
	s := newSubject(t, h, soft, hard)
	want := func(what string, d quota.Decision, allowed, observed bool, limit string, left int64) {
		t.Helper()
		if d.Allowed != allowed || d.Observed != observed || d.Limit != limit ||
			d.Remaining["default"] != left {
			t.Errorf("%s: %+v", what, d)
		}
	}
	want("within both", s.ask(s.newCharge(4)), true, false, "", 16)
	_, d := s.charge(4)
	want("beyond the soft one", d, true, true, soft.Name(), 12)
	if at := epoch.Add(time.Hour); !d.RetryAt.Equal(at) {
		t.Errorf("it would have fit at %s, not at %s", at, d.RetryAt)
	}
	keyed := s.newCharge(6)
	keyed.Key = "k"
	want("larger than the soft one", s.ask(keyed), true, true, soft.Name(), 6)
	again := s.ask(keyed)
	want("the same again", again, true, true, soft.Name(), 6)
	if !again.Replayed {
		t.Error("it was charged twice")
	}
	want("beyond the hard one", s.ask(s.newCharge(7)), false, false, hard.Name(), 6)
	r, err := s.ledger.Reserve(t.Context(), s.newReserve("default.r", 5, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	want("set aside", r, true, true, soft.Name(), 1)
	all := s.newCharge(3)
	all.Observe = true
	want("all observed", s.ask(all), true, true, soft.Name(), 0)
	var denied []string
	for _, e := range s.log("default") {
		denied = append(denied, e.Labels[quota.LabelDenied])
	}
	for i, limit := range []string{"", soft.Name(), soft.Name(), soft.Name()} {
		if denied[i] != limit {
			t.Errorf("entry %d: %q would have denied it, not %q", i, limit, denied[i])
		}
	}
	s.limits = []quota.Limit{soft}
	alone := s.newCharge(1)
	if d := s.must(alone); !d.Observed || len(d.Remaining) > 0 {
		t.Errorf("with no limit that denies: %+v", d)
	}
}
