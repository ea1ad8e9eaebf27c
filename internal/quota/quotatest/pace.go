package quotatest

import (
	"errors"
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
	s := newSubject(t, h)
	midnight, _ := day.Bounds(epoch)
	limit := quota.Limit{Bucket: "default", Units: 2400, Window: day}
	line := limit
	line.Pace = &quota.Pace{Slack: 100}
	b := &quota.Budget{Ledger: s.ledger, Credential: s.credential, Limits: []quota.Limit{limit},
		Paces: []quota.Limit{line}}
	call := func(hours time.Duration, call quota.Call) quota.Decision {
		t.Helper()
		h.SetNow(t, midnight.Add(hours*time.Hour))
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
	const half = 30 * time.Minute
	unpaced := func(units int64) quota.Decision {
		return call(14, quota.Call{Units: units, Unpaced: true})
	}
	pace, name := quota.PaceName, limit.Name()
	expect("the slack at midnight", charge(0, 100, false), "", 0)
	expect("one more", charge(0, 1, false), pace, 36*time.Second)
	expect("the line at 02:00", charge(2, 200, false), "", 0)
	expect("ahead of it", charge(2, 150, false), pace, hours(3)+half)
	expect("a person", charge(2, 1000, true), "", 0)
	expect("the schedule waits for the line", charge(3, 1, false), pace, hours(12)+36*time.Second)
	expect("too much for today: tomorrow, at the line", charge(3, 2000, false), name, hours(43))
	expect("the line after noon", charge(14, 200, false), "", 0)
	expect("one ahead of it", charge(14, 100, false), pace, hours(15))
	expect("a call that the pace does not hold back", unpaced(100), "", 0)
	expect("but the limit does", unpaced(801), name, hours(24))
	// 1,600 are used, 500 set aside until 20:30 and 100 until 04:00 of the next day.
	h.SetNow(t, midnight.Add(hours(16)))
	for units, ttl := range map[int64]time.Duration{500: hours(4) + half, 100: hours(12)} {
		d, err := b.Reserve(t.Context(), quota.ReserveRequest{
			Call: quota.Call{Units: units}, TTL: ttl})
		if err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	expect("when a reservation lapses", charge(16, 200, false), pace, hours(20)+half)
	expect("when it has lapsed and the line is there", charge(16, 550, false), name, hours(21)+half)
	expect("on the next day, without either", charge(16, 750, false), name, hours(24+6)+half)
	expect("on the next day, at its line", charge(16, 1000, false), name, hours(24+9))
	// A call of an unknown price is held back by what it holds.
	hold := func(units int64, of quota.Call) quota.Decision {
		t.Helper()
		h.SetNow(t, midnight.Add(hours(16)))
		of.Units = units
		d, err := b.Hold(t.Context(), quota.ReserveRequest{Call: of, TTL: time.Minute,
			Lapse: quota.LapseCharge})
		denied, ok := errors.AsType[*quota.DeniedError](err)
		if ok {
			d = denied.Decision
		} else if err != nil {
			t.Fatal(err)
		} else if _, err := b.Release(t.Context(), d.Reservation); err != nil {
			t.Fatal(err)
		}
		return d
	}
	expect("a hold ahead of the line", hold(200, quota.Call{}), pace, hours(20)+half)
	expect("one that is not paced", hold(1, quota.Call{Unpaced: true}), "", 0)
	expect("one of a person", hold(1, quota.Call{Manual: true}), "", 0)
	b.Observe = true
	observed := hold(200, quota.Call{})
	if !observed.Allowed || !observed.Observed || observed.Limit != pace ||
		!observed.RetryAt.Equal(midnight.Add(hours(20)+half)) {
		t.Errorf("a hold that is observed: %+v", observed)
	}
	dry := call(16, quota.Call{Units: 550, DryRun: true})
	if !dry.Observed || !dry.RetryAt.Equal(midnight.Add(hours(21)+half)) {
		t.Errorf("observed in a dry run: %+v", dry)
	}
	d := charge(16, 200, false)
	retry := midnight.Add(hours(20) + half)
	if !d.Allowed || !d.Observed || d.Limit != pace || !d.RetryAt.Equal(retry) {
		t.Errorf("observed: %+v", d)
	}
}
