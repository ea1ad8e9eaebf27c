package sqliteledger

import (
	"database/sql"
	"errors"
	"io/fs"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// Statements of the version that knew four migrations.
const (
	earlierLapsed = `SELECT coalesce(sum(remains), 0) FROM reservations
		WHERE bucket = 2 AND expires_at <= ? AND remains > 0`
	earlierHeld    = "SELECT held FROM buckets WHERE id = 2"
	earlierForgets = `DELETE FROM reservations WHERE bucket = 2 AND id IN (
		SELECT id FROM reservations WHERE bucket = 2 AND expires_at <= ? ORDER BY expires_at LIMIT 256)`
	earlierReserves = `INSERT OR REPLACE INTO reservations
		(bucket, id, units, created_at, expires_at, manual, note) VALUES (2, ?, ?, ?, ?, 0, '')`
	earlierRemoves = "DELETE FROM reservations WHERE bucket = 2 AND id = ?"
)

// An earlier version that has the file open goes on counting what was set aside to become an
// entry, also when it has expired, and forgets none of it.
func TestHeldBesideAnEarlierVersion(t *testing.T) {
	path := file(t)
	earlier := openWith(t, path, 4)
	l, now := open(t, path), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	l.Now = func() time.Time { return now }
	holdFor(t, l, "default.a", 30, time.Minute)
	holdFor(t, l, "default.b", 20, time.Minute)
	holdFor(t, l, "default.gone", 10, time.Minute)
	now = now.Add(time.Hour)
	asEarlier(t, earlier, earlierRemoves, "default.gone")
	asEarlier(t, earlier, earlierForgets, now.UnixMicro())
	asEarlier(t, earlier, earlierReserves, "default.c", 7, now.UnixMicro(),
		now.Add(time.Hour).UnixMicro())
	counts := func(want int64) {
		t.Helper()
		var held, lapsed int64
		err := earlier.View(t.Context(), func(tx *sql.Tx) error {
			return errors.Join(tx.QueryRow(earlierHeld).Scan(&held),
				tx.QueryRow(earlierLapsed, now.UnixMicro()).Scan(&lapsed))
		})
		if err != nil || held-lapsed != want {
			t.Errorf("the earlier version counts %d held, %d lapsed (%v), want %d", held, lapsed,
				err, want)
		}
	}
	counts(57)
	u, err := l.Usage(t.Context(), "key1", day(100))
	if err != nil || u.Buckets[0].Held != 7 || u.Buckets[0].Limits[0].Used != 60 {
		t.Errorf("%+v, %v; want 60 used and 7 held", u, err)
	}
	counts(7)
	sound(t, l, "key1")
}

// holdFor sets units aside that become an entry.
func holdFor(t *testing.T, l *Ledger, id string, units int64, ttl time.Duration) {
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

// What an earlier version committed is answered as it was, by a commit that comes again, and an
// earlier version opens no file that has become newer.
func TestCommitsOfAnEarlierVersion(t *testing.T) {
	path := file(t)
	earlier := openWith(t, path, 4)
	now := time.Now().UnixMicro()
	asEarlier(t, earlier, addBucket, "key1")
	asEarlier(t, earlier, addEntry, now, "e1", 30, 30, "job=sweep")
	asEarlier(t, earlier, "UPDATE buckets SET total = 30, newest = ?", now)
	for id, request := range map[string]string{
		"default.some": "commit of 30", "default.all": "commit of all that is left",
	} {
		asEarlier(t, earlier, `INSERT INTO answers
			(credential, kind, key, request, decision, expires_at) VALUES ('key1', 'commit', ?, ?,
			'{"Allowed":true,"Never":false,"Observed":false,"Replayed":false,"Unmetered":false,'||
			'"At":"2026-06-01T12:00:00Z","Entry":"e1","Units":{"default":30},'||
			'"Remaining":{"default":70},"RetryAt":"0001-01-01T00:00:00Z","Limit":"",'||
			'"Reservation":"","ExpiresAt":"0001-01-01T00:00:00Z"}', ?)`,
			id, request, now+time.Hour.Microseconds())
	}
	l := open(t, path)
	for id, units := range map[string]int64{"default.some": 30, "default.all": quota.AllUnits} {
		s := quota.Settle{Credential: "key1", Reservation: id, ID: "e2", Limits: day(100),
			Costs: []quota.Cost{{Bucket: "default", Units: units}}, Within: true}
		d, err := l.Settle(t.Context(), s)
		if err != nil || !d.Replayed || d.Entry != "e1" || d.Remaining["default"] != 70 {
			t.Errorf("%s: %+v, %v", id, d, err)
		}
		s.Costs[0].Units = 29
		if d, err = l.Settle(t.Context(), s); !errors.Is(err, quota.ErrKeyReused) {
			t.Errorf("%s with other units: %+v, %v", id, d, err)
		}
	}
	entries(t, l, 1)
	files, err := fs.Glob(migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, err = sqlite.Open(t.Context(), path, sqlite.Schema{Name: "ledger",
		ApplicationID: applicationID, Migrations: first(t, len(files)-1)}, sqlite.Options{})
	if !errors.Is(err, sqlite.ErrNewer) {
		t.Errorf("opened by an earlier version: %v", err)
	}
}

// What an earlier version cancels lowers a level that was kept.
func TestLevelBesideAnEarlierVersion(t *testing.T) {
	path := file(t)
	earlier := openWith(t, path, 4)
	l, now := open(t, path), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	l.Now = func() time.Time { return now }
	limits := restoring(t, 1000, "restoring 1/1h")
	first := mustCharge(t, l, 50, limits)
	for range 2 * farEntries {
		mustCharge(t, l, 1, limits)
	}
	used := func(want int64) {
		t.Helper()
		u, err := l.Usage(t.Context(), "key1", limits)
		if err != nil || u.Buckets[0].Limits[0].Used != want {
			t.Errorf("%+v, %v; want %d used", u, err, want)
		}
	}
	used(50 + 2*farEntries)
	if number(t, l, "SELECT count(*) FROM levels") != 1 {
		t.Error("no level is kept")
	}
	at := first.At.UnixMicro()
	asEarlier(t, earlier, "DELETE FROM entries WHERE bucket = 2 AND at = ?", at)
	asEarlier(t, earlier, "UPDATE entries SET total = total - 50 WHERE bucket = 2 AND at > ?", at)
	asEarlier(t, earlier, "UPDATE buckets SET total = total - 50 WHERE id = 2")
	used(2 * farEntries)
	sound(t, l, "key1")
}
