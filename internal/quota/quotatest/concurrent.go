package quotatest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"quotabudget/internal/quota"
)

const (
	handles    = 3
	goroutines = 5 // on each handle
	each       = 12
)

// testConcurrent: many at once are allowed exactly the limit between them.
func testConcurrent(t *testing.T, h Harness) {
	h.SetNow(t, epoch)
	var ledgers []quota.Ledger
	for range handles {
		ledgers = append(ledgers, h.Open(t))
	}
	t.Run("Limit", func(t *testing.T) { testExactlyTheLimit(t, ledgers) })
	t.Run("Key", func(t *testing.T) { testOneKeyOnce(t, ledgers) })
	t.Run("Draw", func(t *testing.T) { testDrawsAtOnce(t, ledgers) })
}

// crowd runs do on every handle from several goroutines and waits for them all.
func crowd(ledgers []quota.Ledger, do func(l quota.Ledger, id string)) {
	var group sync.WaitGroup
	for i, l := range ledgers {
		for j := range goroutines {
			group.Go(func() {
				for k := range each {
					do(l, fmt.Sprintf("%d-%d-%d", i, j, k))
				}
			})
		}
	}
	group.Wait()
}

// testExactlyTheLimit charges two buckets in either order.
func testExactlyTheLimit(t *testing.T, ledgers []quota.Ledger) {
	ctx, cred := context.Background(), newCredential()
	limits := []quota.Limit{dayLimit, searchLimit}
	limits[1].Units = 1000
	var allowed atomic.Int64
	crowd(ledgers, func(l quota.Ledger, id string) {
		costs := []quota.Cost{{Bucket: "default", Units: 1}, {Bucket: "search_list", Units: 2}}
		if id[len(id)-1]%2 == 0 {
			costs[0], costs[1] = costs[1], costs[0]
		}
		d, err := l.Charge(ctx, quota.Charge{Credential: cred, ID: id, Costs: costs, Limits: limits})
		if err != nil {
			t.Error(err)
		}
		if d.Allowed {
			allowed.Add(1)
		}
	})
	if allowed.Load() != dayLimit.Units {
		t.Errorf("%d charges were allowed, want %d", allowed.Load(), dayLimit.Units)
	}
	for bucket, units := range map[string]int64{"default": 1, "search_list": 2} {
		log, err := ledgers[0].Entries(ctx, quota.Query{Credential: cred, Bucket: bucket})
		if err != nil || int64(len(log)) != dayLimit.Units {
			t.Fatalf("%d entries in %s, %v; want %d", len(log), bucket, err, dayLimit.Units)
		}
		for i, e := range log {
			if e.Total != units*int64(i+1) || i > 0 && !e.At.After(log[i-1].At) {
				t.Fatalf("entry %d of %s is %+v after %+v", i, bucket, e, log[max(0, i-1)])
			}
		}
	}
}

func testOneKeyOnce(t *testing.T, ledgers []quota.Ledger) {
	ctx, cred := context.Background(), newCredential()
	var first, replayed atomic.Int64
	var entries sync.Map
	crowd(ledgers, func(l quota.Ledger, id string) {
		d, err := l.Charge(ctx, quota.Charge{Credential: cred, ID: id, Key: "once", Costs: []quota.Cost{{Bucket: "default", Units: 60}},
			Limits: []quota.Limit{dayLimit}})
		switch {
		case err != nil || !d.Allowed:
			t.Errorf("%+v, %v", d, err)
		case d.Replayed:
			replayed.Add(1)
		default:
			first.Add(1)
		}
		entries.Store(d.Entry, true)
	})
	different := 0
	entries.Range(func(any, any) bool { different++; return true })
	if first.Load() != 1 || replayed.Load() != int64(len(ledgers))*goroutines*each-1 || different != 1 {
		t.Errorf("%d charges, %d replays, %d different entries", first.Load(), replayed.Load(), different)
	}
}

// testDrawsAtOnce draws from one reservation until it is empty.
func testDrawsAtOnce(t *testing.T, ledgers []quota.Ledger) {
	ctx, cred, id := context.Background(), newCredential(), "default.r"
	limits := []quota.Limit{dayLimit}
	if d, err := ledgers[0].Reserve(ctx, quota.Reserve{Credential: cred, ID: id, Units: 50, Limits: limits, TTL: hours(1)}); err != nil || !d.Allowed {
		t.Fatalf("reserve: %+v, %v", d, err)
	}
	var drawn atomic.Int64
	crowd(ledgers, func(l quota.Ledger, entry string) {
		d, err := l.Charge(ctx, quota.Charge{Credential: cred, ID: entry, Costs: []quota.Cost{{Bucket: "default", Units: 1}}, Limits: limits,
			Reservation: id})
		if err != nil && errorName(err) != "reservation_short" {
			t.Error(err)
		}
		if d.Allowed {
			drawn.Add(1)
		}
	})
	if left, err := ledgers[0].Release(ctx, cred, id); drawn.Load() != 50 || left != 0 || err != nil {
		t.Errorf("%d units were drawn and %d are left (%v), want 50 and 0", drawn.Load(), left, err)
	}
}
