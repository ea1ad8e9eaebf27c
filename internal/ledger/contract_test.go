package ledger_test

import (
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/memstore"
	"quotabudget/internal/quota"
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

// TestLevelBetweenEntries: units that are added in the past have been restored since, even if the
// level of the window was computed at a later time because the newest entry was cancelled.
func TestLevelBetweenEntries(t *testing.T) {
	var clock quotatest.Clock
	l := ledger.New(&memstore.Store{Now: clock.Now})
	day := 24 * time.Hour
	start := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	limits := []quota.Limit{{Bucket: "default", Units: 100,
		Window: quota.Window{Restore: quota.Rate{Units: 7, Per: time.Second}}}}
	charge := func(id string, at time.Time) (cancel func()) {
		clock.Set(t, at)
		c := quota.Charge{Credential: "k", ID: id, Limits: limits,
			Costs: []quota.Cost{{Bucket: "default", Units: 3}}}
		d, err := l.Charge(t.Context(), c)
		must(t, err)
		return func() { must(t, l.Cancel(t.Context(), c, d)) }
	}
	cancelFirst := charge("first", start)
	charge("second", start)
	charge("third", start.Add(day))()
	cancelFirst()
	_, err := l.Adjust(t.Context(), quota.Adjust{Credential: "k", ID: "added", Bucket: "default",
		Units: 10, After: start, Until: start.Add(day - time.Hour), Limits: limits})
	must(t, err)
	u, err := l.Usage(t.Context(), "k", limits)
	must(t, err)
	if used := u.Buckets[0].Limits[0].Used; used != 0 {
		t.Errorf("%d units used an hour later, want 0", used)
	}
}
