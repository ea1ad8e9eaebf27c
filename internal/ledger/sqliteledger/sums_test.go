package sqliteledger

import (
	"fmt"
	"testing"

	"quotabudget/internal/quota"
)

// A file from before there were sums has them as soon as it is opened.
func TestSumsOfAnOlderFile(t *testing.T) {
	path := file(t)
	older := openEarlier(t, path)
	lines := []string{
		"", "run=r1", "region=US", "region=US&run=r1", "method=m&region=US&run=r2&team=x", "run=r1&team=x",
		"overrun=1&region=US", "region=BR&run=a%26b", "job=run&region=BR",
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

const addEntry = "INSERT INTO entries (bucket, at, id, units, total, labels) VALUES (2, ?, ?, ?, ?, ?)"

// What an earlier version charges and takes back while it has the file open is in the sums.
func TestSumsBesideAnEarlierVersion(t *testing.T) {
	path := file(t)
	earlier := openEarlier(t, path)
	asEarlier(t, earlier, "INSERT INTO buckets (id, credential, bucket) VALUES (2, 'k', 'default')")
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

func TestWithoutRun(t *testing.T) {
	for line, want := range map[string]string{
		"": "", "run=1": "", "a=1": "a=1", "a=1&run=2": "a=1", "run=1&z=2": "z=2",
		"a=1&run=2&z=3": "a=1&z=3", "a=1&overrun=2": "a=1&overrun=2", "a=run": "a=run",
	} {
		if got := withoutRun(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
