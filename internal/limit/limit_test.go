package limit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/limit"
)

const (
	second = int64(time.Second / time.Microsecond)
	minute = 60 * second
)

var somebody = limit.Key{1}

var algorithms = []limit.Algorithm{limit.Log, limit.Counter, limit.Fixed}

// must ends a test that cannot go on after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func numbered(i int) limit.Key { return limit.Key{byte(i), byte(i >> 8), byte(i >> 16)} }

func take(m *limit.Memory, p *limit.Policy, at, cost int64) limit.Decision {
	asks := []limit.Ask{{Policy: p, Key: somebody, Cost: cost}}
	m.TakeAt(at, asks)
	return asks[0].Decision
}

// TestSteps lists each algorithm's answers: seconds, units, then allowed or when.
func TestSteps(t *testing.T) {
	type step struct {
		at   float64
		cost int64
		want string
	}
	for _, test := range []struct {
		name   string
		policy limit.Policy
		steps  []step
	}{
		{"the log is exact at the boundary", limit.Policy{Algorithm: limit.Log, Units: 50}, []step{
			{59, 50, "allowed 0 left"}, {61, 1, "58s 0 left"}, {118.999999, 1, "1µs 0 left"},
			{119, 50, "allowed 0 left"},
		}},
		{"a fixed window is not", limit.Policy{Algorithm: limit.Fixed, Units: 50}, []step{
			{59, 50, "allowed 0 left"}, {59, 1, "1s 0 left"}, {60, 50, "allowed 0 left"},
			{60, 1, "1m0s 0 left"},
		}},
		{"a counter lets the window before fade", limit.Policy{
			Algorithm: limit.Counter, Units: 50,
		}, []step{
			{59, 50, "allowed 0 left"}, {60, 1, "1.2s 0 left"}, {61.2, 1, "allowed 0 left"},
			{90, 24, "allowed 0 left"}, {90, 26, "32.4s 0 left"}, {122.4, 26, "allowed 0 left"},
		}},
		{"a log waits for the cost asked", limit.Policy{Algorithm: limit.Log, Units: 10}, []step{
			{0, 4, "allowed 6 left"}, {10, 4, "allowed 2 left"}, {20, 2, "allowed 0 left"},
			{30, 1, "30s 0 left"}, {30, 5, "40s 0 left"}, {30, 10, "50s 0 left"}, {30, 11, "never 0 left"},
			{60, 3, "allowed 1 left"}, {60, 0, "allowed 1 left"},
		}},
		{"who keeps asking is kept out", limit.Policy{
			Algorithm: limit.Log, Units: 2, CountDenied: true,
		}, []step{
			{0, 2, "allowed 0 left"}, {30, 1, "30s 0 left"}, {59, 1, "31s 0 left"}, {60, 1, "59s 0 left"},
			{118, 2, "1m0s 0 left"}, {178, 3, "never 2 left"}, {178, 2, "allowed 0 left"},
		}},
		{"with a counter, too", limit.Policy{
			Algorithm: limit.Counter, Units: 2, CountDenied: true,
		}, []step{
			{0, 2, "allowed 0 left"}, {1, 1, "1m39s 0 left"}, {2, 1, "1m43s 0 left"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := limit.NewMemory()
			test.policy.Name, test.policy.Window = "test", time.Minute
			for _, s := range test.steps {
				d := take(m, &test.policy, int64(s.at*float64(second)), s.cost)
				got := d.RetryAfter.String()
				if d.Allowed {
					got = "allowed"
				} else if d.Never {
					got = "never"
				}
				if got = fmt.Sprintf("%s %d left", got, d.Remaining); got != s.want {
					t.Errorf("%d units after %gs: %s, want %s", s.cost, s.at, got, s.want)
				}
			}
		})
	}
}

// TestOneStep asks several policies in one request: all are charged or none.
func TestOneStep(t *testing.T) {
	mine := &limit.Policy{Name: "mine", Units: 5, Window: time.Minute, Algorithm: limit.Log}
	strict := &limit.Policy{
		Name: "strict", Units: 5, Window: time.Minute, Algorithm: limit.Log, CountDenied: true}
	everybody := &limit.Policy{
		Name: "everybody", Units: 3, Window: time.Hour, Algorithm: limit.Counter}
	m := limit.NewMemory()
	asks := func(cost int64) []limit.Ask {
		return []limit.Ask{{Policy: mine, Key: somebody, Cost: cost},
			{Policy: strict, Key: somebody, Cost: cost}, {Policy: everybody, Cost: cost}}
	}
	a := asks(2)
	if !m.TakeAt(0, a) || limit.Denial(a) != nil {
		t.Fatalf("denied: %+v", a)
	}
	a = asks(2)
	if m.TakeAt(1, a) {
		t.Fatalf("allowed: %+v", a)
	}
	if d := limit.Denial(a); d.Policy != everybody || d.RetryAfter < 59*time.Minute {
		t.Errorf("denied by %+v", d)
	}
	if got := [3]int64{a[0].Remaining, a[1].Remaining, a[2].Remaining}; got != [3]int64{3, 1, 1} {
		t.Errorf("left: %d, want 3 1 1: a denial takes nothing, but where denials count", got)
	}
}

// TestDenial: the longest denial wins, and a cost that never fits is denied for ever.
func TestDenial(t *testing.T) {
	ask := func(d limit.Decision) limit.Ask { return limit.Ask{Decision: d} }
	allowed, never := ask(limit.Decision{Allowed: true}), ask(limit.Decision{Never: true})
	soon, late := ask(limit.Decision{RetryAfter: 1}), ask(limit.Decision{RetryAfter: 2})
	if limit.Denial([]limit.Ask{allowed}) != nil {
		t.Error("all allow, and one denies")
	}
	for _, test := range []struct {
		asks []limit.Ask
		want limit.Ask
	}{
		{[]limit.Ask{soon, allowed, late}, late}, {[]limit.Ask{late, soon}, late},
		{[]limit.Ask{never, late}, never}, {[]limit.Ask{late, never}, never},
	} {
		if got := limit.Denial(test.asks); *got != test.want {
			t.Errorf("of %+v: %+v", test.asks, got)
		}
	}
}

// TestExact plays random charges on a clock that is also set back. It compares each answer of the
// log with a brute-force count, and each wait with the decision a microsecond earlier.
func TestExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &limit.Policy{Name: "p", Units: rapid.Int64Range(1, 30).Draw(t, "units"),
			Window: 100 * time.Microsecond, Algorithm: limit.Log,
			CountDenied: rapid.Bool().Draw(t, "count denied")}
		m := limit.NewMemory()
		var all []charge
		stamp := func(now int64) int64 { // charges keep their order
			if len(all) > 0 {
				now = max(now, all[len(all)-1].at)
			}
			return now
		}
		used := func(now int64) int64 { return inside(all, 100, stamp(now)) }
		now := int64(1000)
		for range rapid.IntRange(1, 80).Draw(t, "charges") {
			now += rapid.Int64Range(0, 40).Draw(t, "later")
			if rapid.IntRange(0, 9).Draw(t, "clock") == 0 {
				now -= rapid.Int64Range(0, 150).Draw(t, "back")
			}
			cost := rapid.Int64Range(0, p.Units+1).Draw(t, "cost")
			fits := func(at int64) bool { return cost == 0 || used(at)+cost <= p.Units }
			want := fits(now)
			if cost > 0 && (want || p.CountDenied && cost <= p.Units) {
				all = append(all, charge{stamp(now), cost})
			}
			left, wait, next := max(0, p.Units-used(now)), int64(0), int64(0)
			for !want && cost <= p.Units && !fits(now+wait) {
				wait++
			}
			for wait == 0 && left < p.Units && p.Units-used(now+next) <= left {
				next++
			}
			d := take(m, p, now, cost)
			if d.Allowed != want || d.Never != (cost > p.Units) || d.Remaining != left ||
				d.RetryAfter.Microseconds() != wait || d.NextAfter.Microseconds() != wait+next {
				t.Fatalf("%d units at %d: %+v; want allowed %v, %d left, after %d, more after %d",
					cost, now, d, want, left, wait, wait+next)
			}
		}
	})
}

// TestRetry checks every algorithm's wait to the microsecond: denied before it, allowed after it.
func TestRetry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &limit.Policy{Name: "p", Units: rapid.Int64Range(1, 50).Draw(t, "units"),
			Window: 997 * time.Millisecond, Algorithm: rapid.SampledFrom(algorithms).Draw(t, "algorithm")}
		m := limit.NewMemory()
		now := int64(rapid.IntRange(0, 5_000_000).Draw(t, "start"))
		for range rapid.IntRange(1, 60).Draw(t, "charges") {
			now += rapid.Int64Range(0, 400_000).Draw(t, "later")
			cost := rapid.Int64Range(1, p.Units).Draw(t, "cost")
			d := take(m, p, now, cost)
			if d.Allowed {
				if free := take(m, p, now+d.ResetAfter.Microseconds(), 0); free.Remaining != p.Units {
					t.Fatalf("free after %s: only %d of %d", d.ResetAfter, free.Remaining, p.Units)
				}
				next := now + d.NextAfter.Microseconds()
				if before := take(m, p, next-1, 0); before.Remaining > d.Remaining {
					t.Fatalf("more than %d are left before %s", d.Remaining, d.NextAfter)
				}
				if then := take(m, p, next, 0); then.Remaining <= d.Remaining {
					t.Fatalf("no more than %d are left after %s", d.Remaining, d.NextAfter)
				}
				continue
			}
			now += d.RetryAfter.Microseconds()
			if early := take(m, p, now-1, cost); early.Allowed || early.RetryAfter != time.Microsecond {
				t.Fatalf("1µs early: %+v", early)
			}
			if late := take(m, p, now, cost); !late.Allowed {
				t.Fatalf("on time: %+v", late)
			}
		}
	})
}

// TestSweep drops the keys that have been idle for a minute, and no others.
func TestSweep(t *testing.T) {
	for _, algorithm := range algorithms {
		m := limit.NewMemory()
		p := &limit.Policy{Name: "p", Units: 2, Window: time.Minute, Algorithm: algorithm}
		const keys = 1000
		for i := range keys {
			m.TakeAt(0, []limit.Ask{{Policy: p, Key: numbered(i), Cost: 1}})
		}
		m.TakeAt(minute*3/2, []limit.Ask{{Policy: p, Key: limit.Key{255, 255, 255}, Cost: 1}})
		idleAt := map[limit.Algorithm]int64{limit.Log: minute, limit.Counter: 2 * minute,
			limit.Fixed: minute}[algorithm]
		for _, test := range []struct {
			at   int64
			want int
		}{{idleAt + minute - 1, keys + 1}, {idleAt + 2*minute - 1, 1}, {idleAt + 4*minute, 0}} {
			m.TakeAt(test.at, nil)
			if n := m.Len(); n != test.want {
				t.Errorf("%s: %d keys after %dµs, want %d", algorithm, n, test.at, test.want)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	good := limit.Policy{Name: "p", Units: 1, Window: time.Second, Algorithm: limit.Log}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	bad := limit.Policy{Units: 1 << 41, Window: 1500 * time.Nanosecond, Algorithm: "leaky"}
	bad.Shards = -1
	for _, word := range []string{"units", "window", "shards",
		`algorithm must be log, counter or fixed, not "leaky"`} {
		if err := bad.Check(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not name %s", err, word)
		}
	}
}
