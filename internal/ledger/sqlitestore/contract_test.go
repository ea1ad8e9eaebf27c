package sqlitestore_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/sqlitestore"
	"quotabudget/internal/quota/quotatest"
)

func TestContract(t *testing.T) {
	var clock quotatest.Clock
	path := filepath.Join(t.TempDir(), "ledger.db")
	quotatest.Run(t, quotatest.Harness{
		Forgets: true,
		Open: func(t testing.TB) *ledger.Ledger {
			s := open(t, path)
			// The contract is not about a loss of power.
			_, err := s.Conn().ExecContext(t.Context(), "PRAGMA synchronous = off")
			must(t, err)
			s.Now = clock.Now
			return ledger.New(s)
		},
		SetNow:    clock.Set,
		Histories: 40,
		Dump:      func(t testing.TB, credential string) string { return dump(t, path, credential) },
	})
}

func open(t testing.TB, path string) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), path)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// tables are those of a ledger that have a column credential.
var tables = []string{"entries", "holds", "lapsed", "buckets", "sums", "notes", "answers"}

// dump is every row of the credential in every table.
func dump(t testing.TB, path, credential string) string {
	db := raw(t, path)
	defer db.Close()
	var text strings.Builder
	for _, table := range tables {
		rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table+" WHERE credential = ?",
			credential)
		must(t, err)
		columns, err := rows.Columns()
		must(t, err)
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			must(t, rows.Scan(into...))
			fmt.Fprintln(&text, table, values)
		}
		must(t, rows.Err())
	}
	return text.String()
}

// raw opens the file as any program could.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	must(t, err)
	return db
}
