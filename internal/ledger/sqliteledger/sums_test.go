package sqliteledger

import (
	"database/sql"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// A file from before there were sums has them as soon as it is opened.
func TestSumsOfAnOlderFile(t *testing.T) {
	path := file(t)
	first, err := fs.ReadFile(schemaFiles, "schema/001.sql")
	if err != nil {
		t.Fatal(err)
	}
	older, err := sqlite.Open(t.Context(), path, sqlite.Schema{
		Name: "ledger", ApplicationID: applicationID, Migrations: fstest.MapFS{"001.sql": {Data: first}},
	}, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{
		"", "run=r1", "region=US", "region=US&run=r1", "method=m&region=US&run=r2&team=x", "run=r1&team=x",
		"overrun=1&region=US", "region=BR&run=a%26b", "job=run&region=BR",
	}
	err = older.Update(t.Context(), func(tx *sql.Tx) error {
		if _, err := tx.Exec("INSERT INTO buckets (id, credential, bucket, total, newest) VALUES (2, 'k', 'default', ?, ?)",
			3*len(lines), 3*len(lines)*200_000_000); err != nil {
			return err
		}
		for i := 1; i <= 3*len(lines); i++ {
			if _, err := tx.Exec("INSERT INTO entries (bucket, at, id, units, total, labels) VALUES (2, ?, ?, 1, ?, ?)",
				i*200_000_000, fmt.Sprint("e", i), i, lines[i%len(lines)]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := older.Close(); err != nil {
		t.Fatal(err)
	}
	l := open(t, path)
	sumsEqualEntries(t, l, 3*len(lines))
}

// What an earlier version charges and takes back while it has the file open is in the sums.
func TestSumsBesideAnEarlierVersion(t *testing.T) {
	path := file(t)
	earlier := openEarlier(t, path)
	asEarlier(t, earlier, "INSERT INTO buckets (id, credential, bucket) VALUES (2, 'k', 'default')")
	l := open(t, path)
	const add = "INSERT INTO entries (bucket, at, id, units, total, labels) VALUES (2, ?, ?, 2, ?, ?)"
	lines := []string{"", "run=r1", "region=US&run=r1", "run=r1&team=x", "a=1&overrun=2", "a=1&run=2&z=3"}
	for i := range 3 * len(lines) {
		total := 2 * (i + 1)
		asEarlier(t, earlier, add, total*100_000_000, fmt.Sprint("e", i), total, lines[i%len(lines)])
		asEarlier(t, earlier, "UPDATE buckets SET total = ?, newest = ?", total, total*100_000_000)
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
	if found, err := l.CheckBucket(t.Context(), "k", "default", false); err != nil || len(found) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestWithoutRun(t *testing.T) {
	for line, want := range map[string]string{
		"": "", "run=1": "", "a=1": "a=1", "a=1&run=2": "a=1", "run=1&z=2": "z=2", "a=1&run=2&z=3": "a=1&z=3",
		"a=1&overrun=2": "a=1&overrun=2", "a=run": "a=run",
	} {
		if got := withoutRun(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
