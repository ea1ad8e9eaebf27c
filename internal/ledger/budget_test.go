package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/memstore"
	"quotabudget/internal/quota"
)

// inMemory is a ledger in memory whose clock shows *now.
func inMemory() (l *ledger.Ledger, now *time.Time) {
	now = new(time.Time)
	return ledger.New(&memstore.Store{Now: func() time.Time { return *now }}), now
}

// TestPace holds charges back behind a line that moves with the ledger's clock.
func TestPace(t *testing.T) {
	day, err := quota.ParseWindow("day", "America/Los_Angeles")
	must(t, err)
	l, now := inMemory()
	midnight, _ := day.Bounds(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	limit := quota.Limit{Bucket: "default", Units: 2400, Window: day}
	line := limit
	line.Pace = &quota.Pace{Slack: 100}
	b := &quota.Budget{Ledger: l, Credential: "key1", Limits: []quota.Limit{limit},
		Paces: []quota.Limit{line}}
	const hour = time.Hour
	const half = hour / 2
	pace, name := quota.PaceName, limit.Name()
	charge := func(c quota.Call) (quota.Decision, error) { return b.Charge(t.Context(), c) }
	reserve := func(ttl time.Duration) func(quota.Call) (quota.Decision, error) {
		return func(c quota.Call) (quota.Decision, error) {
			return b.Reserve(t.Context(), quota.ReserveRequest{Call: c, TTL: ttl})
		}
	}
	hold := func(c quota.Call) (quota.Decision, error) { // and give back
		d, err := b.Hold(t.Context(), quota.ReserveRequest{Call: c, TTL: time.Minute,
			Lapse: quota.LapseCharge})
		if denied, ok := errors.AsType[*quota.DeniedError](err); ok {
			return denied.Decision, nil
		} else if err != nil {
			return d, err
		}
		_, err = b.Release(t.Context(), d.Reservation)
		return d, err
	}
	observed := func(ask func(quota.Call) (quota.Decision, error)) func(quota.Call) (
		quota.Decision, error) {
		return func(c quota.Call) (quota.Decision, error) {
			b.Observe = true
			defer func() { b.Observe = false }()
			d, err := ask(c)
			if !d.Allowed || !d.Observed {
				t.Errorf("observed: %+v", d)
			}
			return d, err
		}
	}
	for _, c := range []struct {
		what  string
		at    int64 // hours after midnight
		ask   func(quota.Call) (quota.Decision, error)
		call  quota.Call
		limit string
		retry time.Duration // after midnight
	}{
		{"the slack at midnight", 0, charge, quota.Call{Units: 100}, "", 0},
		{"one more", 0, charge, quota.Call{Units: 1}, pace, 36 * time.Second},
		{"the line at 02:00", 2, charge, quota.Call{Units: 200}, "", 0},
		{"ahead of it", 2, charge, quota.Call{Units: 150}, pace, 3*hour + half},
		{"a person", 2, charge, quota.Call{Units: 1000, Manual: true}, "", 0},
		{"the schedule waits for the line", 3, charge, quota.Call{Units: 1}, pace,
			12*hour + 36*time.Second},
		{"too much for today: tomorrow, at the line", 3, charge, quota.Call{Units: 2000}, name,
			43 * hour},
		{"the line after noon", 14, charge, quota.Call{Units: 200}, "", 0},
		{"one ahead of it", 14, charge, quota.Call{Units: 100}, pace, 15 * hour},
		{"a call that the pace does not hold back", 14, charge,
			quota.Call{Units: 100, Unpaced: true}, "", 0},
		{"but the limit does", 14, charge, quota.Call{Units: 801, Unpaced: true}, name, 24 * hour},
		{"set aside until 20:30", 16, reserve(4*hour + half), quota.Call{Units: 500}, "", 0},
		{"and until 04:00", 16, reserve(12 * hour), quota.Call{Units: 100}, "", 0},
		{"when a reservation lapses", 16, charge, quota.Call{Units: 200}, pace, 20*hour + half},
		{"when the line is there too", 16, charge, quota.Call{Units: 550}, name, 21*hour + half},
		{"on the next day, without either", 16, charge, quota.Call{Units: 750}, name,
			30*hour + half},
		{"on the next day, at its line", 16, charge, quota.Call{Units: 1000}, name, 33 * hour},
		{"a hold ahead of the line", 16, hold, quota.Call{Units: 200}, pace, 20*hour + half},
		{"one that is not paced", 16, hold, quota.Call{Units: 1, Unpaced: true}, "", 0},
		{"one of a person", 16, hold, quota.Call{Units: 1, Manual: true}, "", 0},
		{"an observed hold", 16, observed(hold), quota.Call{Units: 200}, pace, 20*hour + half},
		{"an observed dry run", 16, observed(charge), quota.Call{Units: 550, DryRun: true}, name,
			21*hour + half},
		{"observed", 16, observed(charge), quota.Call{Units: 200}, pace, 20*hour + half},
	} {
		*now = midnight.Add(time.Duration(c.at) * hour)
		d, err := c.ask(c.call)
		if err != nil || d.Limit != c.limit || d.Allowed != (c.limit == "" || d.Observed) ||
			c.limit != "" && !d.RetryAt.Equal(midnight.Add(c.retry)) {
			t.Errorf("%s: %+v, %v, want denied by %q until %v", c.what, d, err, c.limit,
				midnight.Add(c.retry))
		}
	}
}

// TestSpendAgain: a call that was charged once, under its key, is not given back by a caller that
// comes with the key again.
func TestSpendAgain(t *testing.T) {
	l, now := inMemory()
	*now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	limits := []quota.Limit{{Bucket: "default", Units: 100, Window: quota.Sliding(time.Hour)}}
	b := &quota.Budget{Ledger: l, Credential: "key1", Limits: limits}
	var cancels []func(context.Context) error
	for _, replayed := range []bool{false, true} {
		call := quota.Call{Bucket: "default", Units: 10, Key: "once"}
		d, cancel, err := b.Spend(t.Context(), call)
		if err != nil || !d.Allowed || d.Replayed != replayed {
			t.Fatalf("%+v, %v", d, err)
		}
		cancels = append(cancels, cancel)
	}
	_, dry, err := b.Spend(t.Context(), quota.Call{Units: 1, DryRun: true})
	must(t, err)
	for _, c := range []struct {
		cancel func(context.Context) error
		used   int64
	}{{dry, 10}, {cancels[1], 10}, {cancels[0], 0}} {
		err := c.cancel(t.Context())
		u, err2 := l.Usage(t.Context(), "key1", limits)
		if used := u.Buckets[0].Limits[0].Used; err != nil || err2 != nil || used != c.used {
			t.Errorf("cancelled: %v, %v, %d units used, want %d", err, err2, used, c.used)
		}
	}
}

// TestDenialsAreCounted: each denial of a budget is counted, by charge or by hold, but not one that
// was counted before.
func TestDenialsAreCounted(t *testing.T) {
	l, now := inMemory()
	*now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	b := &quota.Budget{Ledger: l, Credential: "key1", Labels: quota.Labels{"job": "a", "run": "r"},
		Limits: []quota.Limit{{Bucket: "default", Units: 9, Window: quota.Sliding(time.Hour)}}}
	for _, call := range []quota.Call{{Units: 5}, {Units: 5}, {Units: 5, Again: true}} {
		if _, err := b.Charge(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.Hold(t.Context(), quota.ReserveRequest{Call: quota.Call{Units: 6}, TTL: time.Minute})
	if _, denied := errors.AsType[*quota.DeniedError](err); !denied {
		t.Errorf("hold: %v", err)
	}
	l.Flush(time.Minute)
	all, err := l.Denials(t.Context(), "key1", *now)
	if err != nil || len(all) != 1 || all[0].Count != 2 || all[0].Units != 11 ||
		all[0].Labels.Encode() != "job=a" {
		t.Errorf("%+v, %v", all, err)
	}
}
