package sqlitestore_test

import (
	"database/sql"
	"testing"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota/quotatest"
)

func TestContract(t *testing.T) {
	var clock quotatest.Clock
	path := file(t)
	openEnv(t, path)
	watch, err := sql.Open("sqlite", "file:"+path)
	must(t, err)
	defer watch.Close()
	watch.SetMaxOpenConns(1) // each connection counts its own versions
	quotatest.Run(t, quotatest.Harness{
		Forgets: true,
		Open: func(t testing.TB) *ledger.Ledger {
			l := openEnv(t, path)
			exec(t, l, "PRAGMA synchronous = off") // the contract does not cover a loss of power
			l.Now = clock.Now
			return l.Ledger
		},
		SetNow:    clock.Set,
		Histories: 40,
		Dump: func(t testing.TB, _ string) (version string) { // changes with any commit
			must(t, watch.QueryRowContext(t.Context(), "PRAGMA data_version").Scan(&version))
			return version
		},
	})
}
