package limit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"quotabudget/internal/limit"
)

// takeParts decides asks with parts in memory.
func takeParts(t *testing.T, m *limit.Memory, asks []limit.Ask) bool {
	t.Helper()
	allowed, err := limit.TakeParts(t.Context(), asks, m.Take)
	must(t, err)
	return allowed
}

// TestParts: the parts of a split key together admit the limit, in any order.
func TestParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := limit.NewMemory()
		p := &limit.Policy{
			Name: "hot", Units: 10, Window: time.Minute, Algorithm: limit.Log, Shards: 4}
		ask := func(cost int64) limit.Decision {
			asks := []limit.Ask{{Policy: p, Key: somebody, Cost: cost}}
			if allowed := takeParts(t, m, asks); allowed != asks[0].Allowed {
				t.Fatal(allowed, asks[0])
			}
			return asks[0].Decision
		}
		if d := ask(4); d.Allowed || !d.Never {
			t.Errorf("more than any part has: %+v", d)
		}
		for i := range 10 {
			if !ask(1).Allowed {
				t.Fatalf("denied at %d", i)
			}
			time.Sleep(time.Second)
		}
		d := ask(1)
		if d.Allowed || d.RetryAfter != 50*time.Second {
			t.Fatalf("%+v", d)
		}
		time.Sleep(d.RetryAfter - time.Microsecond)
		if d := ask(1); d.Allowed {
			t.Errorf("a microsecond early: %+v", d)
		}
		time.Sleep(time.Microsecond)
		if d := ask(1); !d.Allowed {
			t.Errorf("on time: %+v", d)
		}
	})
}

// TestPartsBesideWholeKeys: when a whole key denies, no part is charged.
func TestPartsBesideWholeKeys(t *testing.T) {
	m := limit.NewMemory()
	all := &limit.Policy{
		Name: "all", Units: 10, Window: time.Minute, Algorithm: limit.Counter, Shards: 2}
	mine := &limit.Policy{Name: "mine", Units: 3, Window: time.Minute, Algorithm: limit.Log}
	allowed := 0
	for i := range 40 {
		asks := []limit.Ask{{Policy: all, Cost: 1},
			{Policy: mine, Key: limit.Key{byte(i / 10)}, Cost: 1}}
		ok := takeParts(t, m, asks)
		if ok != (asks[0].Allowed && asks[1].Allowed) {
			t.Fatalf("%v %+v", ok, asks)
		}
		if ok {
			allowed++
		}
	}
	if allowed != 10 {
		t.Errorf("%d allowed, want 3 of each of three and one more", allowed)
	}
}

// TestPartsError measures what docs/api.md bounds: the units admitted in a window, and the units
// of each part that stay unused when a call is denied.
func TestPartsError(t *testing.T) {
	const units, window = 240, time.Minute
	for _, algorithm := range algorithms {
		for _, shards := range []int{1, 4, 16} {
			for _, cost := range []int64{1, 8} {
				t.Run(fmt.Sprintf("%s in %d of %d", algorithm, shards, cost), func(t *testing.T) {
					t.Parallel()
					most, unused := measureParts(t, algorithm, shards, cost, units, window)
					t.Logf("at most %d of %d in a window, %d unused at a denial", most, units, unused)
					bound := int64(units)
					if algorithm != limit.Log {
						bound *= 2
					}
					if most > bound {
						t.Errorf("%d in a window", most)
					}
					if rest := int64(shards) * (cost - 1); algorithm == limit.Log && unused > rest {
						t.Errorf("%d units unused, want at most %d", unused, rest)
					}
				})
			}
		}
	}
}

// measureParts plays random bursts and counts by brute force: the most units in any window, and
// the most free units when a call was denied.
func measureParts(t *testing.T, algorithm limit.Algorithm, shards int, cost, units int64,
	window time.Duration) (most, unused int64) {
	synctest.Test(t, func(t *testing.T) {
		m := limit.NewMemory()
		p := &limit.Policy{
			Name: "p", Units: units, Window: window, Algorithm: algorithm, Shards: shards}
		random := rand.New(rand.NewPCG(1, uint64(shards)))
		var admitted []time.Time
		for range 300 {
			time.Sleep(time.Duration(random.Int64N(int64(window / 4))))
			for range random.Int64N(units / cost) {
				for len(admitted) > 0 && time.Since(admitted[0]) >= window {
					admitted = admitted[1:]
				}
				asks := []limit.Ask{{Policy: p, Key: somebody, Cost: cost}}
				if takeParts(t, m, asks) {
					admitted = append(admitted, time.Now())
					most = max(most, cost*int64(len(admitted)))
				} else {
					unused = max(unused, units-cost*int64(len(admitted)))
				}
			}
		}
	})
	return most, unused
}

// TestPartsCountDenials: a call that one part denies and another allows does not count as denied.
// Calls below the limit are always allowed, and a client that never stops above it stays denied.
func TestPartsCountDenials(t *testing.T) {
	p := limit.Policy{Name: "hot", Units: 8, Window: time.Minute, Algorithm: limit.Log, Shards: 4,
		CountDenied: true}
	m := limit.NewMemory()
	var now int64
	step := func(_ context.Context, asks []limit.Ask) (bool, error) {
		return m.TakeAt(now, asks), nil
	}
	call := func(apart time.Duration) bool {
		now += apart.Microseconds()
		asks := []limit.Ask{{Policy: &p, Key: limit.FixedKey("k"), Cost: 1}}
		allowed, err := limit.TakeParts(t.Context(), asks, step)
		if err != nil {
			t.Fatal(err)
		}
		return allowed
	}
	for i := range 2000 {
		if !call(8 * time.Second) {
			t.Fatalf("call %d is denied: 7 or 8 calls a minute are below the limit", i)
		}
	}
	denied := 0
	for range 1000 {
		if !call(2 * time.Second) {
			denied++
		}
	}
	if denied < 980 {
		t.Errorf("30 calls a minute: %d of 1000 denied", denied)
	}
}
