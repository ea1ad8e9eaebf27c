package ledger_test

import (
	"testing"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/memstore"
	"quotabudget/internal/quota/quotatest"
)

// TestMemoryContract holds the rule, over a store in memory, to the contract.
func TestMemoryContract(t *testing.T) {
	var clock quotatest.Clock
	store := &memstore.Store{Now: clock.Now}
	quotatest.Run(t, quotatest.Harness{
		Open:   func(testing.TB) *ledger.Ledger { return ledger.New(store) },
		SetNow: clock.Set,
	})
}
