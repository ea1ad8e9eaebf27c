package sqliteledger

import (
	"fmt"
	"strings"
	"testing"

	"quotabudget/internal/quota"
	"quotabudget/internal/quota/quotatest"
)

func TestContract(t *testing.T) {
	var clock quotatest.Clock
	path := file(t)
	opened := func(t testing.TB) *Ledger {
		l := open(t, path)
		l.Now = clock.Now
		return l
	}
	quotatest.Run(t, quotatest.Harness{
		Open:   func(t testing.TB) quota.Ledger { return opened(t) },
		SetNow: clock.Set,
		Dump:   func(t testing.TB, name string) string { return dump(t, opened(t), name) },
		Break: func(t testing.TB, credential string, how quotatest.Damage) {
			lay(t, opened(t), credential, how)
		},
	})
}

// lay lays hands on a bucket.
func lay(t testing.TB, l *Ledger, credential string, how quotatest.Damage) {
	t.Helper()
	edit, ok := map[quotatest.Damage]string{
		quotatest.NewestDeleted: "DELETE FROM entries " +
			"WHERE bucket = ?1 AND at = (SELECT max(at) FROM entries WHERE bucket = ?1)",
		quotatest.MiddleDeleted:  "DELETE FROM entries WHERE bucket = ?1 AND units = 20",
		quotatest.AllDeleted:     "DELETE FROM entries WHERE bucket = ?1",
		quotatest.StateTooHigh:   "UPDATE buckets SET total = total + 1000 WHERE id = ?1",
		quotatest.StateTooLow:    "UPDATE buckets SET total = total - 40 WHERE id = ?1",
		quotatest.TotalTooHigh:   "UPDATE entries SET total = 25 WHERE bucket = ?1 AND units = 10",
		quotatest.UnitsUnread:    "UPDATE entries SET units = -20 WHERE bucket = ?1 AND units = 20",
		quotatest.LabelsUnread:   "UPDATE entries SET labels = '%z' WHERE bucket = ?1 AND units = 5",
		quotatest.TakingUnread:   "UPDATE takings SET labels = '%z' WHERE bucket = ?1",
		quotatest.SumTooLow:      "UPDATE sums SET units = units - 7 WHERE bucket = ?1",
		quotatest.HeldTooHigh:    "UPDATE buckets SET held = held + 7 WHERE id = ?1",
		quotatest.HoldUnreadable: "UPDATE reservations SET drawn = -3 WHERE bucket = ?1",
	}[how]
	if !ok {
		t.Fatal(how)
	}
	const find = "SELECT id FROM buckets WHERE credential = ? AND bucket = 'default'"
	var id int64
	err := l.db.Read.QueryRowContext(t.Context(), find, credential).Scan(&id)
	if err == nil {
		l.kept.lose()
		_, err = l.conn.ExecContext(t.Context(), edit, id)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// dump is every row of the credential in every table.
func dump(t testing.TB, l *Ledger, credential string) string {
	var text strings.Builder
	for _, query := range []string{
		"SELECT * FROM buckets WHERE credential = ?",
		"SELECT e.* FROM entries e JOIN buckets b ON e.bucket = b.id WHERE b.credential = ?",
		"SELECT s.* FROM sums s JOIN buckets b ON s.bucket = b.id WHERE b.credential = ?",
		"SELECT t.* FROM takings t JOIN buckets b ON t.bucket = b.id WHERE b.credential = ?",
		"SELECT r.* FROM reservations r JOIN buckets b ON r.bucket = b.id WHERE b.credential = ?",
		"SELECT * FROM answers WHERE credential = ?",
	} {
		rows, err := l.db.Read.QueryContext(t.Context(), query, credential)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&text, values...)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}
