package quotatest

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// testPace: a line that moves with the ledger's clock.
func testPace(t *testing.T, h Harness) {
	day, err := quota.ParseWindow("day", "America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	l := h.Open(t)
	midnight, _ := day.Bounds(epoch)
	limit := quota.Limit{Bucket: "default", Units: 2400, Window: day}
	line := limit
	line.Pace = &quota.Pace{Slack: 100}
	credential := newCredential()
	b := &quota.Budget{Ledger: l, Credential: credential, Limits: []quota.Limit{limit}, Paces: []quota.Limit{line}}
	call := func(hours time.Duration, call quota.Call) quota.Decision {
		t.Helper()
		h.SetNow(t, midnight.Add(hours*time.Hour))
		call.Bucket = "default"
		d, err := b.Charge(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	charge := func(hours time.Duration, units int64, manual bool) quota.Decision {
		t.Helper()
		return call(hours, quota.Call{Units: units, Manual: manual})
	}
	expect := func(what string, d quota.Decision, limit string, retry time.Duration) {
		t.Helper()
		if d.Allowed != (limit == "") || d.Limit != limit {
			t.Errorf("%s: %+v, want denied by %q", what, d, limit)
		}
		if limit != "" && !d.RetryAt.Equal(midnight.Add(retry)) {
			t.Errorf("%s: retry at %v, want %v", what, d.RetryAt, midnight.Add(retry))
		}
	}
	expect("the slack at midnight", charge(0, 100, false), "", 0)
	expect("one more", charge(0, 1, false), quota.PaceName, 36*time.Second)
	expect("the line at 02:00", charge(2, 200, false), "", 0)
	expect("ahead of it", charge(2, 150, false), quota.PaceName, 3*time.Hour+30*time.Minute)
	expect("a person", charge(2, 1000, true), "", 0)
	expect("the schedule waits for the line", charge(3, 1, false), quota.PaceName, 12*time.Hour+36*time.Second)
	expect("more than is left today: tomorrow, once the line is there", charge(3, 2000, false), limit.Name(), 43*time.Hour)
	expect("the line after noon", charge(14, 200, false), "", 0)
	expect("one ahead of it", charge(14, 100, false), quota.PaceName, 15*time.Hour)
	expect("a call that the pace does not hold back", call(14, quota.Call{Units: 100, Unpaced: true}), "", 0)
	reserve := func(hours time.Duration, units int64, ttl time.Duration) {
		t.Helper()
		h.SetNow(t, midnight.Add(hours*time.Hour))
		d, err := b.Reserve(t.Context(), quota.ReserveRequest{Units: units, TTL: ttl})
		if err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	expect("but the limit does", call(14, quota.Call{Units: 801, Unpaced: true}), limit.Name(), 24*time.Hour)
	// 1,600 are used, 500 set aside until 20:30 and 100 until 04:00 of the next day.
	reserve(16, 500, 4*time.Hour+30*time.Minute)
	reserve(16, 100, 12*time.Hour)
	expect("when a reservation lapses", charge(16, 200, false), quota.PaceName, 20*time.Hour+30*time.Minute)
	expect("when it has lapsed and the line is there", charge(16, 550, false), limit.Name(), 21*time.Hour+30*time.Minute)
	expect("on the next day, without either", charge(16, 750, false), limit.Name(), 24*time.Hour+6*time.Hour+30*time.Minute)
	expect("on the next day, at its line", charge(16, 1000, false), limit.Name(), 24*time.Hour+9*time.Hour)
	b.Observe = true
	h.SetNow(t, midnight.Add(16*time.Hour))
	dry, err := b.Charge(t.Context(), quota.Call{Bucket: "default", Units: 550, DryRun: true})
	if err != nil || !dry.Observed || !dry.RetryAt.Equal(midnight.Add(21*time.Hour+30*time.Minute)) {
		t.Errorf("observed in a dry run: %+v, %v", dry, err)
	}
	if d := charge(16, 200, false); !d.Allowed || !d.Observed || d.Limit != quota.PaceName || !d.RetryAt.Equal(midnight.Add(20*time.Hour+30*time.Minute)) {
		t.Errorf("observed: %+v", d)
	}
}
