package quota_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// splitBudget has a limit of 100 on each part of output, one of 150 on all parts, and one on
// requests.
func splitBudget(t *testing.T) *quota.Budget {
	t.Helper()
	l, err := ledger.OpenFile(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	l.Now = func() time.Time { return now }
	hour := quota.Sliding(time.Hour)
	return &quota.Budget{Ledger: l, Credential: "key1", Split: []string{"output"},
		Limits: []quota.Limit{
			{Bucket: "requests", Units: 1000, Window: hour},
			{Bucket: "output", Units: 100, Window: hour},
			{Bucket: "output", Units: 150, Window: hour, Across: true},
		}}
}

// standings returns the figures of each limit: "output/a 1h 60+0/100" is used, held and the limit.
func standings(t *testing.T, b *quota.Budget) (text string) {
	t.Helper()
	u, err := b.Usage(t.Context())
	must(t, err)
	for _, bucket := range u.Buckets {
		for _, l := range bucket.Limits {
			text += fmt.Sprintf("%s %d+%d/%d\n", l.Limit.Name(), l.Used, bucket.Held,
				l.Limit.Units)
		}
	}
	return text
}

func wantStandings(t *testing.T, b *quota.Budget, want string) {
	t.Helper()
	if got := standings(t, b); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// chargePart charges a part of output, and other buckets. limit is the name of the limit that must
// deny the charge; "" if it must be allowed.
func chargePart(t *testing.T, b *quota.Budget, part string, units int64, limit string,
	more ...quota.Cost) {
	t.Helper()
	d, err := b.Charge(t.Context(), quota.Call{Costs: append(more,
		quota.Cost{Bucket: quota.SplitBucket("output", part), Units: units})})
	if err != nil || d.Allowed != (limit == "") && !d.Observed || d.Limit != limit {
		t.Errorf("%s: %+v, %v; want it denied by %q", part, d, err, limit)
	}
}

// Each part has the limit for itself, and all share the limit across: one charge takes from both.
func TestSplitBucket(t *testing.T) {
	b := splitBudget(t)
	wantStandings(t, b, "requests 1h 0+0/1000\noutput 1h 0+0/150\n")
	charge := func(part string, units int64, limit string) {
		t.Helper()
		chargePart(t, b, part, units, limit, quota.Cost{Bucket: "requests", Units: 1})
	}
	charge("a", 60, "")
	charge("a", 41, "output/a 1h")
	charge("b-4.5", 80, "")
	charge("c", 11, "output 1h")
	charge("c", 10, "")
	wantStandings(t, b, "requests 1h 3+0/1000\noutput/a 1h 60+0/100\noutput/b-4.5 1h 80+0/100\n"+
		"output/c 1h 10+0/100\noutput 1h 150+0/150\n")
}

// counted counts requests to a ledger: calls, and buckets whose standing is read.
type counted struct {
	quota.BudgetLedger
	calls, buckets int
}

func (c *counted) BucketsOf(ctx context.Context, bucket string) ([]quota.BucketTotal, error) {
	c.calls++
	return c.BudgetLedger.BucketsOf(ctx, bucket)
}

func (c *counted) Usage(ctx context.Context, bucket string, limits []quota.Limit) (quota.Usage,
	error) {
	c.calls++
	c.buckets += len(limits)
	return c.BudgetLedger.Usage(ctx, bucket, limits)
}

// Of the parts that callers make up, those are listed that took the most, and nothing is read of
// the others, however many there are. One that never took anything is not even counted, unless it
// is suspended.
func TestPartsThatAreListed(t *testing.T) {
	t.Parallel()
	b := splitBudget(t)
	b.Limits = b.Limits[:2]
	names := &counted{BudgetLedger: b.Ledger}
	b.Ledger = names
	for i := range quota.MaxParts + 7 {
		chargePart(t, b, fmt.Sprintf("none-%02d", i), 1, "")
	}
	chargePart(t, b, "zz-real", 2, "")
	for i, part := range []string{"given-back", "denied", "closed"} { // these used nothing
		call := quota.Call{Costs: []quota.Cost{{Bucket: "output/" + part, Units: 100 + int64(i%2)}}}
		d, err := b.Hold(t.Context(), quota.ReserveRequest{Call: call, TTL: time.Hour})
		if err == nil {
			err = b.GiveBack(t.Context(), d, quota.Call{})
		}
		if (err == nil) != (part != "denied") {
			t.Fatal(part, err)
		}
	}
	until := time.Date(2026, 6, 1, 13, 0, 0, 0, time.UTC)
	closed := quota.Suspension{Credential: "key1", Bucket: "output/closed", Until: until}
	must(t, names.Suspend(t.Context(), closed))
	u, err := b.Usage(t.Context())
	must(t, err)
	var listed []string
	for _, bucket := range u.Buckets {
		listed = append(listed, bucket.Bucket)
	}
	if len(listed) != 1+quota.MaxParts || !slices.Contains(listed, "output/zz-real") ||
		u.LeftOut["output"] != 7+1+1 || len(u.LeftOut) != 1 {
		t.Errorf("listed %v, left out %v", listed, u.LeftOut)
	}
	if names.calls != 2 || names.buckets != len(listed) {
		t.Errorf("%d calls, %d buckets read", names.calls, names.buckets)
	}
}

// What was held in a part and across is settled in both, though the call names the part alone.
func TestSplitBucketSettled(t *testing.T) {
	b := splitBudget(t)
	hold := func(part string, units int64) string {
		t.Helper()
		d, err := b.Reserve(t.Context(), quota.ReserveRequest{
			TTL: time.Minute, Lapse: quota.LapseCharge,
			Call: quota.Call{Costs: []quota.Cost{
				{Bucket: quota.SplitBucket("output", part), Units: units, Most: 2 * units},
				{Bucket: "requests", Units: 1},
			}},
		})
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		return d.Reservation
	}
	less, more := hold("a", 50), hold("b", 30)
	if _, buckets, err := quota.ParseReservation(less); err != nil ||
		fmt.Sprint(buckets) != "[output/a requests output]" {
		t.Errorf("%s is of %v", less, buckets)
	}
	wantStandings(t, b, "requests 1h 0+2/1000\noutput/a 1h 0+50/100\noutput/b 1h 0+30/100\n"+
		"output 1h 0+80/150\n")
	for reservation, truth := range map[string]quota.Cost{
		less: {Bucket: "output/a", Units: 20}, more: {Bucket: "output/b", Units: 70},
	} {
		d, err := b.Settle(t.Context(), reservation, quota.Call{Costs: []quota.Cost{truth}})
		if err != nil || d.Units["output"] != truth.Units || d.Units["requests"] != 1 {
			t.Errorf("%+v, %v", d, err)
		}
	}
	wantStandings(t, b, "requests 1h 2+0/1000\noutput/a 1h 20+0/100\noutput/b 1h 70+0/100\n"+
		"output 1h 90+0/150\n")
}

// Costs of two parts are added up across, and so is the most that they can be.
func TestCostsAcrossParts(t *testing.T) {
	b := splitBudget(t)
	d, err := b.Reserve(t.Context(), quota.ReserveRequest{TTL: time.Minute, Call: quota.Call{
		Costs: []quota.Cost{
			{Bucket: "output/a", Units: 40, Most: 90}, {Bucket: "output/b", Units: 50},
		}}})
	if err != nil || d.Units["output"] != 90 {
		t.Fatal(d, err)
	}
	for bucket, most := range map[string]int64{"output/a": 90, "output/b": 50, "output": 140} {
		list, err := b.Ledger.Reservations(t.Context(), "key1", bucket)
		if err != nil || len(list) != 1 || list[0].Most != most || list[0].ID != d.Reservation {
			t.Errorf("%s: %+v, %v; want at most %d", bucket, list, err, most)
		}
	}
	given, err := b.Release(t.Context(), d.Reservation)
	if err != nil || fmt.Sprint(given) != "map[output:90 output/a:40 output/b:50]" {
		t.Errorf("%v, %v", given, err)
	}
}

// A part that the call does not name settles as all that is left, and with it the sum across.
func TestCommitOfSeveral(t *testing.T) {
	b := splitBudget(t)
	d, err := b.Reserve(t.Context(), quota.ReserveRequest{TTL: time.Minute, Call: quota.Call{
		Costs: []quota.Cost{{Bucket: "output/a", Units: 40}}}})
	if err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	if d, err := b.Commit(t.Context(), d.Reservation, 10); err == nil {
		t.Errorf("so many units of two buckets: %+v", d)
	}
	if d, err = b.Commit(t.Context(), d.Reservation, quota.AllUnits); err != nil {
		t.Error(d, err)
	}
	wantStandings(t, b, "requests 1h 0+0/1000\noutput/a 1h 40+0/100\noutput 1h 40+0/150\n")
	const value = "output@team=ci.r" // a repair may create such a reservation
	if d, err := b.Commit(t.Context(), value, 10); !errors.Is(err, quota.ErrMalformed) {
		t.Error(d, err)
	}
	if d, err := b.Draw(t.Context(), value, 10, nil); !errors.Is(err, quota.ErrMalformed) {
		t.Error(d, err)
	}
}

// A part may have a limit of its own: it replaces the limit of each part in such a window, and adds
// to those in other windows.
func TestLimitOnAPart(t *testing.T) {
	b := splitBudget(t)
	day := quota.Window{Calendar: "day", Zone: time.UTC}
	b.Limits = append(b.Limits,
		quota.Limit{Bucket: "output/a", Units: 120, Window: quota.Sliding(time.Hour)},
		quota.Limit{Bucket: "output/c", Units: 120, Window: quota.Sliding(time.Hour),
			Observe: true},
		quota.Limit{Bucket: "output/b", Units: 30, Window: day},
		quota.Limit{Bucket: "output/b", Units: 40, Window: quota.Sliding(time.Minute)})
	wantStandings(t, b, "requests 1h 0+0/1000\noutput 1h 0+0/150\noutput/a 1h 0+0/120\n"+
		"output/c 1h 0+0/120\noutput/b day UTC 0+0/30\noutput/b 1m 0+0/40\n")
	chargePart(t, b, "a", 110, "")
	chargePart(t, b, "a", 11, "output/a 1h")
	chargePart(t, b, "b", 20, "")
	chargePart(t, b, "b", 11, "output/b day UTC")
	chargePart(t, b, "c", 21, "output 1h")
	chargePart(t, b, "c", 20, "")
	wantStandings(t, b, "requests 1h 0+0/1000\noutput/b 1h 20+0/100\noutput/b day UTC 20+0/30\n"+
		"output/b 1m 20+0/40\noutput/c 1h 20+0/100\noutput/c 1h 20+0/120\n"+
		"output 1h 150+0/150\noutput/a 1h 110+0/120\n")
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
