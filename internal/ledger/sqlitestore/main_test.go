package sqlitestore_test

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/sqlitestore"
	"quotabudget/internal/quota"
)

var rawSchema = fstest.MapFS{
	"001.sql": {Data: []byte("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT) STRICT")},
}

// env is a ledger, its store, and the clock of it.
type env struct {
	*ledger.Ledger
	store *sqlitestore.Store
	path  string
	Now   func() time.Time
}

func openAt(ctx context.Context, path string) (*env, error) {
	s, err := sqlitestore.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	l := &env{Ledger: ledger.New(s), store: s, path: path, Now: time.Now}
	s.Now = func() time.Time { return l.Now() }
	return l, nil
}

func openEnv(t testing.TB, path string) *env {
	t.Helper()
	l, err := openAt(t.Context(), path)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "ledger.db") }

// clocked is a ledger with a clock that the test sets.
func clocked(t *testing.T) (*env, *time.Time) {
	t.Helper()
	l, now := openEnv(t, file(t)), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	l.Now = func() time.Time { return now }
	return l, &now
}

func day(units int64) []quota.Limit {
	return []quota.Limit{{Bucket: "default", Units: units, Window: quota.Sliding(24 * time.Hour)}}
}

func aCharge(units int64, limits []quota.Limit) quota.Charge {
	return quota.Charge{
		Credential: "key1",
		ID:         quota.NewID(time.Now()),
		Costs:      []quota.Cost{{Bucket: "default", Units: units}},
		Limits:     limits,
		Labels: quota.Labels{
			"method": "youtube.videos.list", "region": "US",
			"job": "sweep", "run": "06fmjq2kx4a9bc",
		},
	}
}

// charge charges one unit; the limit is ten.
func (l *env) charge(ctx context.Context) error {
	_, err := l.Charge(ctx, aCharge(1, day(10)))
	return err
}

// queued waits until so many callers wait.
func (l *env) queued(n int) {
	for waiting := -1; waiting != n; runtime.Gosched() {
		waiting, _ = l.store.Waiting()
	}
}

// log reads all entries and checks that they add up.
func log(t *testing.T, l *env) []quota.Entry {
	t.Helper()
	entries, err := l.Entries(t.Context(), quota.Query{Credential: "key1", Bucket: "default"})
	must(t, err)
	for i, e := range entries[:max(0, len(entries)-1)] {
		if next := entries[i+1]; next.Total != e.Total+next.Units || !next.At.After(e.At) {
			t.Fatalf("entry %d: %+v after %+v", i+1, next, e)
		}
	}
	return entries
}

// entries makes sure that there are so many.
func entries(t *testing.T, l *env, want int) {
	t.Helper()
	if n := len(log(t, l)); n != want {
		t.Errorf("%d entries, want %d", n, want)
	}
}

func mustCharge(t *testing.T, l *env, units int64, limits []quota.Limit) quota.Decision {
	t.Helper()
	d, err := l.Charge(t.Context(), aCharge(units, limits))
	if err != nil || !d.Allowed {
		t.Fatalf("charge: %+v, %v", d, err)
	}
	return d
}

func mustReserve(t *testing.T, l *env, id string, units int64, lapse quota.Lapse,
	ttl time.Duration) {
	t.Helper()
	d, err := l.Reserve(t.Context(), quota.Reserve{
		Credential: "key1", ID: "default." + id, Limits: day(100), TTL: ttl, Lapse: lapse,
		Costs: []quota.Cost{{Bucket: "default", Units: units}},
	})
	if err != nil || !d.Allowed {
		t.Fatalf("reserve: %+v, %v", d, err)
	}
}

// exec runs a statement on a connection of its own.
func exec(t testing.TB, l *env, statement string) {
	t.Helper()
	if _, err := l.store.Conn().ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// number reads a number on a connection of its own.
func number(t *testing.T, l *env, query string) (n int) {
	t.Helper()
	must(t, l.store.Conn().QueryRowContext(t.Context(), query).Scan(&n))
	return n
}

// sound makes sure that a check finds nothing.
func sound(t *testing.T, l *env) {
	t.Helper()
	if found, err := l.Check(t.Context(), "key1", "default", false); err != nil || len(found) > 0 {
		t.Errorf("found %+v, %v", found, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
