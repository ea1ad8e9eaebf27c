package sqliteledger

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// openEarlier opens the file as the version before held did.
func openEarlier(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	return openWith(t, path, 1)
}

// openWith opens the file as the version did that knew so many migrations.
func openWith(t *testing.T, path string, migrations int) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, sqlite.Schema{
		Name: "ledger", ApplicationID: applicationID, Migrations: first(t, migrations),
	}, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// first is the first few migrations.
func first(t *testing.T, migrations int) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	for n := range migrations {
		name := fmt.Sprintf("%03d.sql", n+1)
		text, err := fs.ReadFile(schemaFiles, "schema/"+name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	return files
}

func asEarlier(t *testing.T, db *sqlite.DB, statement string, args ...any) {
	t.Helper()
	err := db.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), statement, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What an earlier version set aside is held, and what it goes on to do while it has the file open
// counts from then on.
func TestHoldsOfAnEarlierVersion(t *testing.T) {
	path := file(t)
	earlier := openEarlier(t, path)
	now := time.Now().UnixMicro()
	later := now + time.Hour.Microseconds()
	const add = `INSERT OR REPLACE INTO reservations
		(bucket, id, units, created_at, expires_at, manual, note) VALUES (2, ?, ?, ?, ?, 0, '')`
	const draw = "UPDATE reservations SET drawn = drawn + ? WHERE bucket = 2 AND id = ?"
	asEarlier(t, earlier, addBucket, "key1")
	asEarlier(t, earlier, add, "default.a", 30, now, later)
	asEarlier(t, earlier, add, "default.b", 20, now, later)
	asEarlier(t, earlier, add, "default.over", 40, now-2, now-1)
	asEarlier(t, earlier, draw, 5, "default.b")

	l := open(t, path)
	held := func(what string, want int64) {
		t.Helper()
		u, err := l.Usage(t.Context(), "key1", day(100))
		if err != nil || u.Buckets[0].Held != want {
			t.Errorf("%s: %+v, %v; want %d held", what, u, err, want)
		}
		sound(t, l, "key1")
	}
	held("opened", 45)
	asEarlier(t, earlier, add, "default.c", 7, now, later)
	held("added", 52)
	asEarlier(t, earlier, draw, 7, "default.c")
	held("drawn", 45)
	asEarlier(t, earlier, draw, -2, "default.c")
	held("cancelled", 47)
	asEarlier(t, earlier, add, "default.over", 3, now, later)
	held("replaced", 50)
	asEarlier(t, earlier, "DELETE FROM reservations WHERE bucket = 2 AND id = 'default.a'")
	held("removed", 20)
	for units, allowed := range map[int64]bool{81: false, 80: true} {
		c := aCharge(units, day(100))
		c.DryRun = true
		if d, err := l.Charge(t.Context(), c); err != nil || d.Allowed != allowed {
			t.Errorf("%d beside 20 held of 100: %+v, %v", units, d, err)
		}
	}
}

// What reservations hold is found by an index, however many there are.
func TestHoldsAreIndexed(t *testing.T) {
	l := open(t, file(t))
	texts, err := readStatements(sqlFiles)
	if err != nil {
		t.Fatal(err)
	}
	for name, index := range map[string]string{
		"reservation_holds": "holding", "reservation_expired": "holding",
		"reservation_lapsing": "lapsing", "lapse_stamps": "lapsing",
		"lapsed_trim_drawn": "lapsing", "reservation_trim": "by_expiry",
	} {
		var plan []string
		rows, err := l.conn.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+texts[name], 2, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, detail)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(plan, "; "); !strings.Contains(got, "INDEX reservations_"+index) ||
			strings.Contains(got, "SCAN reservations") ||
			index == "holding" && strings.Contains(got, "TEMP B-TREE") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A total of what is held that somebody lowered by hand is found and mended.
func TestHeldTooLow(t *testing.T) {
	l, _ := clocked(t)
	mustReserve(t, l, "r", 60)
	exec(t, l, "UPDATE buckets SET held = 10")
	found, err := l.CheckBucket(t.Context(), "key1", "default", true)
	if err != nil || len(found) != 1 ||
		!strings.Contains(found[0].What, "10 units as held, and its reservations hold 60") {
		t.Errorf("found %+v, %v", found, err)
	}
	if d, err := l.Charge(t.Context(), aCharge(41, day(100))); err != nil || d.Allowed {
		t.Errorf("41 beside 60 held of 100: %+v, %v", d, err)
	}
}

// A reservation of which more is drawn than it had may hold any number of units: it denies.
func TestMoreDrawnThanSetAside(t *testing.T) {
	l := open(t, file(t))
	mustReserve(t, l, "r", 60)
	exec(t, l, "UPDATE reservations SET drawn = 61")
	d, err := l.Charge(t.Context(), aCharge(41, day(100)))
	if d.Allowed || !errors.Is(err, quota.ErrLedgerUnusable) {
		t.Errorf("%+v, %v", d, err)
	}
}

// A file from before there were sums has them as soon as it is opened.
func TestSumsOfAnOlderFile(t *testing.T) {
	path := file(t)
	older := openEarlier(t, path)
	lines := []string{
		"", "run=r1", "region=US", "region=US&run=r1", "method=m&region=US&run=r2&team=x",
		"run=r1&team=x", "overrun=1&region=US", "region=BR&run=a%26b", "job=run&region=BR",
	}
	n := 3 * len(lines)
	asEarlier(t, older, "INSERT INTO buckets (id, credential, bucket, total, newest) "+
		"VALUES (2, 'k', 'default', ?, ?)", n, n*200_000_000)
	for i := 1; i <= n; i++ {
		asEarlier(t, older, addEntry, i*200_000_000, fmt.Sprint("e", i), 1, i, lines[i%len(lines)])
	}
	if err := older.Close(); err != nil {
		t.Fatal(err)
	}
	sumsEqualEntries(t, open(t, path), n)
}

const (
	addBucket = "INSERT INTO buckets (id, credential, bucket) VALUES (2, ?, 'default')"
	addEntry  = `INSERT INTO entries (bucket, at, id, units, total, labels)
		VALUES (2, ?, ?, ?, ?, ?)`
)

// What an earlier version charges and takes back while it has the file open is in the sums.
func TestSumsBesideAnEarlierVersion(t *testing.T) {
	path := file(t)
	earlier := openEarlier(t, path)
	asEarlier(t, earlier, addBucket, "k")
	l := open(t, path)
	lines := []string{
		"", "run=r1", "region=US&run=r1", "run=r1&team=x", "a=1&overrun=2", "a=1&run=2&z=3",
	}
	for i := range 3 * len(lines) {
		total := 2 * (i + 1)
		at := total * 100_000_000
		asEarlier(t, earlier, addEntry, at, fmt.Sprint("e", i), 2, total, lines[i%len(lines)])
		asEarlier(t, earlier, "UPDATE buckets SET total = ?, newest = ?", total, at)
	}
	sumsEqualEntries(t, l, 3*len(lines))
	asEarlier(t, earlier, "DELETE FROM entries WHERE at <= 800000000")
	sumsEqualEntries(t, l, 3*len(lines)-4)
}

func sumsEqualEntries(t *testing.T, l *Ledger, number int) {
	t.Helper()
	sums, err := l.Sums(t.Context(), quota.SumQuery{Credential: "k", Bucket: "default"})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := l.Entries(t.Context(), quota.Query{Credential: "k", Bucket: "default"})
	if err != nil || len(entries) != number {
		t.Fatal(entries, err)
	}
	if want := quota.AddUp(entries); fmt.Sprint(sums) != fmt.Sprint(want) {
		t.Errorf("got\n%v, want\n%v", sums, want)
	}
	sound(t, l, "k")
}
