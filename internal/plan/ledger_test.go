package plan

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/ledger/sqliteledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/sim"
)

// TestExecute_Ledger: the real ledger denies the very pages that the plan says, names the same
// limit, and says the same moment for another try. What is left out for its share is not asked for,
// nor are pages that a chart has already.
func TestExecute_Ledger(t *testing.T) {
	ledger, err := sqliteledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	must(t, err)
	defer ledger.Close()
	var now time.Time
	ledger.Now = func() time.Time { return now }
	credentials := 0 // each plan has one of its own
	budget := func(p Plan) *quota.Budget {
		credentials++
		return &quota.Budget{Ledger: ledger, Credential: fmt.Sprint("key", credentials),
			Limits: p.Limits, Paces: p.Paces, Prices: map[string][]quota.Cost{"list": price}}
	}
	resumed := 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		length := p.To.Sub(p.From) // each page is a transaction
		p.To = p.From.Add(max(length/8, min(length, 2*time.Hour)))
		now = p.From
		b := budget(p)
		p.Before = []sim.Standing{before(t, b, &now)}
		now = p.From
		resumed += charged(t, p, b, &now)
	})
	t.Logf("%d runs have resumed a chart", resumed)
	p := Plan{Lanes: lanes(t, "*/5 * * * *", 4, time.Minute, "US", "BR"),
		Limits: []quota.Limit{sliding(5, 4*time.Minute), sliding(40, time.Hour)},
		Price:  price, Reset: day(t, "UTC"),
		From: at(t, "2026-06-01T00:00:00Z"), To: at(t, "2026-06-01T03:00:00Z")}
	if n := charged(t, p, budget(p), &now); n < 12 {
		t.Errorf("%d runs have resumed a chart", n)
	}
}

// charged plays a plan, and charges the pages of its runs to a budget. It returns how many have got
// pages of a chart that was cut off.
func charged(t rapid.TB, p Plan, b *quota.Budget, now *time.Time) (resumed int) {
	runs, _ := played(p)
	for i, run := range runs {
		lane := laneOf(p, run)
		wanted := missing(lane, runs[:i], run.At)
		if run.Wanted != wanted || run.Lost() == (run.Pages == wanted) {
			t.Fatalf("%v: %d pages are missing", run, wanted)
		}
		if run.Outcome == sim.LeftOut {
			continue
		}
		if wanted < lane.Pages && run.Pages > 0 {
			resumed++
		}
		*now = run.At
		unpaced := belowFloor(p, lane, runs[:i], run.At)
		for page := range wanted {
			d, err := b.Charge(context.Background(), quota.Call{Method: "list", Unpaced: unpaced})
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
	return resumed
}

// before spends and sets aside some units in the day before the plan, and says what the ledger then
// holds.
func before(t *rapid.T, b *quota.Budget, now *time.Time) sim.Standing {
	ctx := context.Background()
	from := *now
	for i := range rapid.IntRange(0, 6).Draw(t, "charges before") {
		*now = from.Add(-24*time.Hour + time.Duration(i)*4*time.Hour)
		call := quota.Call{Bucket: quota.DefaultBucket,
			Units: rapid.Int64Range(1, 20).Draw(t, "units before")}
		if d, err := b.Charge(ctx, call); err != nil && !d.Never {
			t.Fatal(err)
		}
	}
	learn(t, b, now)
	for range rapid.IntRange(0, 3).Draw(t, "held") {
		request := quota.ReserveRequest{
			Call: quota.Call{Units: rapid.Int64Range(1, 20).Draw(t, "units held")},
			TTL:  time.Duration(rapid.IntRange(50, 1800).Draw(t, "ttl")) * time.Minute,
			Lapse: rapid.SampledFrom([]quota.Lapse{quota.LapseCharge,
				quota.LapseRelease}).Draw(t, "lapse")}
		if d, err := b.Reserve(ctx, request); err != nil && !d.Never {
			t.Fatal(err)
		}
	}
	known := sim.Standing{Bucket: quota.DefaultBucket}
	if rapid.IntRange(0, 3).Draw(t, "suspended") == 0 {
		hours := rapid.IntRange(1, 10).Draw(t, "hours suspended")
		known.SuspendedUntil = from.Add(time.Duration(hours) * time.Hour)
		must(t, b.Ledger.Suspend(ctx, b.Credential, quota.DefaultBucket, known.SuspendedUntil))
	}
	query := quota.Query{Credential: b.Credential, Bucket: quota.DefaultBucket}
	entries, err := b.Ledger.Entries(ctx, query)
	must(t, err)
	for _, e := range entries {
		known.Spent = append(known.Spent, quota.Spent{At: e.At, Units: e.Units, Charges: 1})
	}
	usage, err := b.Usage(ctx)
	must(t, err)
	known.ResetAt = usage.Buckets[0].ResetAt
	known.Reservations, err = b.Ledger.Reservations(ctx, b.Credential, quota.DefaultBucket)
	must(t, err)
	return known
}

// learn tells, some hours before the plan or now, when an anchored window ends.
func learn(t *rapid.T, b *quota.Budget, now *time.Time) {
	from := *now
	i := slices.IndexFunc(b.Limits, func(l quota.Limit) bool { return l.Window.Anchored })
	if i < 0 || rapid.Bool().Draw(t, "untold") {
		return
	}
	*now = from.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "told")) * time.Hour)
	end := now.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "ends")) * time.Minute)
	_, err := b.Learn(context.Background(), quota.Learn{Limit: b.Limits[i], Remaining: -1,
		Reset: end})
	must(t, err)
	*now = from
}
