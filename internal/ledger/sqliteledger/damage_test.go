package sqliteledger

import (
	"errors"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// A reservation of which more is drawn than it had may hold any number of units: it denies.
func TestMoreDrawnThanSetAside(t *testing.T) {
	l, err := Open(t.Context(), file(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	day := []quota.Limit{{Bucket: "default", Units: 100, Window: quota.Sliding(24 * time.Hour)}}
	r := quota.Reserve{Credential: "k", ID: "default.r", Units: 60, TTL: time.Hour, Limits: day}
	if d, err := l.Reserve(t.Context(), r); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	if _, err := l.conn.ExecContext(t.Context(), "UPDATE reservations SET drawn = 61"); err != nil {
		t.Fatal(err)
	}
	d, err := l.Charge(t.Context(), quota.Charge{
		Credential: "k", ID: "e1", Costs: []quota.Cost{{Bucket: "default", Units: 41}}, Limits: day,
	})
	if d.Allowed || !errors.Is(err, quota.ErrLedgerUnusable) {
		t.Errorf("%+v, %v", d, err)
	}
}
