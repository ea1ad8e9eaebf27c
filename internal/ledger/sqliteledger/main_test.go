package sqliteledger

import (
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"quotabudget/internal/quota"
)

var rawSchema = fstest.MapFS{
	"001.sql": {Data: []byte("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT) STRICT")},
}

func day(units int64) []quota.Limit {
	return []quota.Limit{{Bucket: "default", Units: units, Window: quota.Sliding(24 * time.Hour)}}
}

func open(t testing.TB, path string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "ledger.db") }

// clocked is a ledger with a clock that the test sets.
func clocked(t *testing.T) (*Ledger, *time.Time) {
	t.Helper()
	l, now := open(t, file(t)), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	l.Now = func() time.Time { return now }
	return l, &now
}

// log reads all entries and checks that they add up.
func log(t *testing.T, l *Ledger) []quota.Entry {
	t.Helper()
	entries, err := l.Entries(t.Context(), quota.Query{Credential: "key1", Bucket: "default"})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries[:max(0, len(entries)-1)] {
		if next := entries[i+1]; next.Total != e.Total+next.Units || !next.At.After(e.At) {
			t.Fatalf("entry %d: %+v after %+v", i+1, next, e)
		}
	}
	return entries
}

// entries makes sure that there are so many.
func entries(t *testing.T, l *Ledger, want int) {
	t.Helper()
	if n := len(log(t, l)); n != want {
		t.Errorf("%d entries, want %d", n, want)
	}
}

func mustCharge(t *testing.T, l *Ledger, units int64, limits []quota.Limit) quota.Decision {
	t.Helper()
	d, err := l.Charge(t.Context(), aCharge(units, limits))
	if err != nil || !d.Allowed {
		t.Fatalf("charge: %+v, %v", d, err)
	}
	return d
}

func mustReserve(t *testing.T, l *Ledger, id string, units int64) {
	t.Helper()
	d, err := l.Reserve(t.Context(), quota.Reserve{
		Credential: "key1", ID: "default." + id, Limits: day(100), TTL: time.Hour,
		Costs: []quota.Cost{{Bucket: "default", Units: units}},
	})
	if err != nil || !d.Allowed {
		t.Fatalf("reserve: %+v, %v", d, err)
	}
}

// exec runs a statement beside the ledger.
func exec(t *testing.T, l *Ledger, statement string) {
	t.Helper()
	l.kept.lose() // SQLite does not say what its own connection changes
	if _, err := l.conn.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// number reads a number beside the ledger.
func number(t *testing.T, l *Ledger, query string) (n int) {
	t.Helper()
	if err := l.db.Read.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// sound makes sure that a check finds nothing.
func sound(t *testing.T, l *Ledger, credential string) {
	t.Helper()
	found, err := l.CheckBucket(t.Context(), credential, "default", false)
	if err != nil || len(found) > 0 {
		t.Errorf("found %+v, %v", found, err)
	}
}
