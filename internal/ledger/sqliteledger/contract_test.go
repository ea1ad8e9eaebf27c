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
		l, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		l.Now = clock.Now
		t.Cleanup(func() { l.Close() })
		return l
	}
	quotatest.Run(t, quotatest.Harness{
		Open:   func(t testing.TB) quota.Ledger { return opened(t) },
		SetNow: clock.Set,
		Dump:   func(t testing.TB, credential string) string { return dump(t, opened(t), credential) },
	})
}

// dump is every row of the credential in every table.
func dump(t testing.TB, l *Ledger, credential string) string {
	var text strings.Builder
	for _, query := range []string{
		"SELECT * FROM buckets WHERE credential = ?",
		"SELECT e.* FROM entries e JOIN buckets b ON e.bucket = b.id WHERE b.credential = ?",
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
