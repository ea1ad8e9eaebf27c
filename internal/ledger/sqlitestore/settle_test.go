package sqlitestore_test

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// Entries of lapses, and holds that are over, are forgotten in passing.
func TestLapsesAreForgotten(t *testing.T) {
	l, now := clocked(t)
	holdFor(t, l, "default.a", 1, time.Minute)
	mustReserve(t, l, "over", 1, "")
	*now = now.Add(time.Hour)
	mustCharge(t, l, 1, day(100))
	*now = now.Add(quota.Retention + time.Hour)
	holdFor(t, l, "default.b", 1, time.Minute)
	*now = now.Add(time.Hour)
	mustCharge(t, l, 1, day(100))
	if n := number(t, l, "SELECT count(*) FROM lapsed"); n != 1 {
		t.Errorf("%d lapses are known, want 1", n)
	}
	if n := number(t, l, "SELECT count(*) FROM holds"); n != 0 {
		t.Errorf("%d holds are kept", n)
	}
	sound(t, l)
}

func holdFor(t *testing.T, l *env, id string, units int64, ttl time.Duration) {
	t.Helper()
	d, err := l.Reserve(t.Context(), quota.Reserve{
		Credential: "key1", ID: id, Limits: day(100), TTL: ttl, Lapse: quota.LapseCharge,
		Costs:  []quota.Cost{{Bucket: "default", Units: units, Most: units + 5}},
		Labels: quota.Labels{"job": "sweep", "run": "r1"},
	})
	if err != nil || !d.Allowed {
		t.Fatalf("reserve: %+v, %v", d, err)
	}
}
