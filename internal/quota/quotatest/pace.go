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
	charge := func(hours time.Duration, units int64, manual bool) quota.Decision {
		t.Helper()
		h.SetNow(t, midnight.Add(hours*time.Hour))
		d, err := b.Charge(t.Context(), quota.Call{Bucket: "default", Units: units, Manual: manual})
		if err != nil {
			t.Fatal(err)
		}
		return d
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
	expect("more than is left today: tomorrow, once the line is there", charge(3, 2000, false), quota.PaceName, 43*time.Hour)
	expect("the line after noon", charge(14, 200, false), "", 0)
}
