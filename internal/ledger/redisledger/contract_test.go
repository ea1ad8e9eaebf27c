package redisledger

import (
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/quota/quotatest"
)

func TestContract(t *testing.T) {
	s := redistest.Start(t, redistest.Options{Clock: true})
	quotatest.Run(t, quotatest.Harness{
		Open:   func(t testing.TB) quota.Ledger { return open(t, s.URL()) },
		SetNow: func(t testing.TB, now time.Time) { s.SetNow(t, now) },
		Dump:   func(t testing.TB, credential string) string { return dump(t, open(t, s.URL()).client, credential) },
	})
}
