package quotatest

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// testDryRun: the answer is that of the charge, word for word but for its entry, and nothing at all
// is written.
func testDryRun(t *testing.T, h Harness) {
	s := newSubject(t, h, dayLimit)
	def := func(units int64) []quota.Cost { return both(units, 0)[:1] }
	for i, c := range []quota.Charge{
		{ID: "first", Costs: def(10)}, // of a credential that is new
		{ID: "two", Costs: both(5, 2)},
		{ID: "denied", Costs: both(5, 1)},
		{ID: "observed", Costs: both(5, 1), Observe: true},
		{ID: "key", Costs: def(7), Key: "k"},
		{ID: "known", Costs: def(7), Key: "k"},
		{ID: "reused", Costs: def(8), Key: "k"},
		{ID: "never", Costs: def(101)},
		{ID: "drawn", Costs: def(4), Reservation: "default.r"},
		{ID: "short", Costs: def(40), Reservation: "default.r"},
		{ID: "full", Costs: def(40)},
		{ID: "over", Costs: def(14)},
	} {
		s.at(time.Duration(i) * time.Minute)
		if c.ID == "drawn" {
			s.reserve("default.r", 20, time.Hour)
		}
		c.Credential, c.Limits = s.credential, bothLimits[:len(c.Costs)]
		c.Labels = quota.Labels{"job": "never seen before " + c.ID}
		before := s.picture()
		dry := c
		dry.DryRun = true
		got, gotErr := s.ledger.Charge(t.Context(), dry)
		if after := s.picture(); after != before {
			t.Errorf("%s: the dry run changed the store\nfrom %s\nto   %s", c.ID, before, after)
		}
		if got.Entry != "" && !got.Replayed {
			t.Errorf("%s: the dry run names an entry: %+v", c.ID, got)
		}
		want, wantErr := s.ledger.Charge(t.Context(), c)
		if !got.Replayed {
			want.Entry = ""
		}
		if !sameDecision(got, want) || errorName(gotErr) != errorName(wantErr) {
			t.Errorf("%s:\ndry run %+v, %v\n charge %+v, %v", c.ID, got, gotErr, want, wantErr)
		}
	}
	b := &quota.Budget{Ledger: s.ledger, Credential: s.credential, Limits: bothLimits}
	d, cancel, err := b.Spend(t.Context(), quota.Call{Units: 1, DryRun: true})
	if err != nil || !d.Allowed {
		t.Fatalf("spend: %+v, %v", d, err)
	}
	if err := cancel(t.Context()); err != nil {
		t.Errorf("there was nothing to take back: %v", err)
	}
	log := s.log("default")
	if len(log) != 6 {
		t.Fatalf("%d entries, want 6: %+v", len(log), log)
	}
	for _, e := range log {
		if want := "never seen before " + e.ID; e.Labels["job"] != want {
			t.Errorf("entry %s lost its labels after a dry run with the same: %v", e.ID, e.Labels)
		}
	}
}
