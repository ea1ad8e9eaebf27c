package quotatest

import (
	"testing"

	"quotabudget/internal/quota"
)

// TestModel holds the model itself to the contract.
func TestModel(t *testing.T) { Run(t, harnessOf(&Model{})) }

func harnessOf(m *Model) Harness {
	var clock Clock
	m.Now = clock.Now
	return Harness{Open: func(testing.TB) quota.Ledger { return m }, SetNow: clock.Set}
}
