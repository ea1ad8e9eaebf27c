package plan

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/ledger/sqliteledger"
	"quotabudget/internal/quota"
)

// TestExecute_Ledger: the real ledger denies the very pages that the plan says, names the same limit, and says the same
// moment for another try. What is left out for its share is not asked for.
func TestExecute_Ledger(t *testing.T) {
	ledger, err := sqliteledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	var now time.Time
	ledger.Now = func() time.Time { return now }
	credentials := 0 // each plan has one of its own
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		p.To = p.From.Add(p.To.Sub(p.From) / 8) // each page is a transaction
		now = p.From
		credentials++
		b := &quota.Budget{Ledger: ledger, Credential: fmt.Sprint("key", credentials), Limits: p.Limits, Paces: p.Paces, Prices: map[string][]quota.Cost{"list": price}}
		p.Before = []Standing{before(t, b, &now)}
		now = p.From
		runs, _ := played(p)
		for _, run := range runs {
			if run.Outcome == LeftOut {
				continue
			}
			now = run.At
			for page := int64(0); page < run.Wanted; page++ {
				d, err := b.Charge(context.Background(), quota.Call{Method: "list"})
				if err != nil && !d.Never {
					t.Fatal(err)
				}
				if d.Allowed != (page < run.Pages) {
					t.Fatalf("%v: page %d: the ledger says %+v, %v", run, page, d, err)
				}
				if d.Allowed {
					continue
				}
				if d.Limit != run.Limit || !d.RetryAt.Equal(run.RetryAt) {
					t.Fatalf("%v: the ledger says %s, retry %s", run, d.Limit, d.RetryAt)
				}
				break
			}
		}
	})
}

// before spends and sets aside some units in the day before the plan, and says what the ledger then holds.
func before(t *rapid.T, b *quota.Budget, now *time.Time) Standing {
	ctx := context.Background()
	from := *now
	for i := range rapid.IntRange(0, 6).Draw(t, "charges before") {
		*now = from.Add(-24*time.Hour + time.Duration(i)*4*time.Hour)
		call := quota.Call{Bucket: quota.DefaultBucket, Units: rapid.Int64Range(1, 20).Draw(t, "units before")}
		if d, err := b.Charge(ctx, call); err != nil && !d.Never {
			t.Fatal(err)
		}
	}
	if rapid.Bool().Draw(t, "held") {
		aside := quota.Aside{Units: rapid.Int64Range(1, 20).Draw(t, "units held"), TTL: time.Duration(rapid.IntRange(5, 30).Draw(t, "ttl")) * time.Hour}
		if d, err := b.Reserve(ctx, aside); err != nil && !d.Never {
			t.Fatal(err)
		}
	}
	known := Standing{Bucket: quota.DefaultBucket}
	if rapid.IntRange(0, 3).Draw(t, "suspended") == 0 {
		known.SuspendedUntil = from.Add(time.Duration(rapid.IntRange(1, 10).Draw(t, "hours suspended")) * time.Hour)
		if err := b.Ledger.Suspend(ctx, b.Credential, quota.DefaultBucket, known.SuspendedUntil); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if known.Entries, err = b.Ledger.Entries(ctx, quota.Query{Credential: b.Credential, Bucket: quota.DefaultBucket}); err != nil {
		t.Fatal(err)
	}
	if known.Reservations, err = b.Ledger.Reservations(ctx, b.Credential, quota.DefaultBucket); err != nil {
		t.Fatal(err)
	}
	return known
}
