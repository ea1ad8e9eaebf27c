package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/memstore"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/quota/quotatest"
)

// TestGroupsDecideAsTheRule: on random histories charge.lua decides groups of charges as the rule
// would one after the other, and leaves the others to it.
func TestGroupsDecideAsTheRule(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Clock: true})
	l := openEnv(t, s.URL())
	left, denied, allowed := 0, 0, 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		var clock quotatest.Clock
		rule := ledger.New(&memstore.Store{Now: clock.Now})
		now := start.Add(time.Duration(random.Int64N(48*3600)) * time.Second)
		limits := randomLimits(random)
		for step := range 12 {
			now = now.Add(time.Duration(random.Int64N(int64(time.Hour))))
			if random.IntN(3) == 0 { // entries leave a window within a group
				now = now.Truncate(time.Minute).Add(time.Duration(random.IntN(3)) * time.Microsecond)
			}
			now = now.Truncate(time.Microsecond)
			clock.Set(t, now)
			s.SetNow(t, now)
			credential := fmt.Sprintf("k%d", seed)
			if random.IntN(4) == 0 {
				r := quota.Reserve{Credential: credential, Limits: limits,
					ID:    quota.ReservationID(fmt.Sprintf("r%d", step), "default"),
					Costs: []quota.Cost{{Bucket: "default", Units: 1 + random.Int64N(20)}},
					TTL:   time.Duration(1+random.IntN(90)) * time.Minute,
					Lapse: []quota.Lapse{quota.LapseRelease, quota.LapseCharge}[random.IntN(2)]}
				sameAs(t, rule.Reserve, l.Reserve, r)
				continue
			}
			group := make([]quota.Charge, 1+random.IntN(20))
			for i := range group {
				group[i] = quota.Charge{Credential: credential, ID: fmt.Sprintf("c%d-%d", step, i),
					Limits: limits, Manual: random.IntN(4) == 0,
					Costs:  []quota.Cost{{Bucket: "default", Units: 1 + random.Int64N(30)}},
					Labels: quota.Labels{"job": fmt.Sprint(random.IntN(2)), "run": fmt.Sprint(i)}}
			}
			decisions, err := l.store.ChargeTogether(t.Context(), group)
			if err != nil {
				t.Fatal(err)
			}
			for i, d := range decisions {
				if d == nil {
					left++
					continue
				}
				want, err := rule.Charge(t.Context(), group[i])
				if err != nil || !reflect.DeepEqual(*d, want) {
					t.Fatalf("seed %d, step %d, charge %d of %v at %v:\n%+v\nwant\n%+v, %v", seed, step, i,
						group[i].Costs, now, *d, want, err)
				}
				if d.Allowed {
					allowed++
				} else {
					denied++
				}
			}
			for i, d := range decisions {
				if d == nil {
					sameAs(t, rule.Charge, l.Charge, group[i])
				}
			}
		}
		q := quota.Query{Credential: fmt.Sprintf("k%d", seed), Bucket: "default"}
		got, err := l.Entries(t.Context(), q)
		want, err2 := rule.Entries(t.Context(), q)
		if err != nil || err2 != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: the log is\n%+v\nwant\n%+v", seed, got, want)
		}
		sums, err := l.Sums(t.Context(), quota.SumQuery{Credential: q.Credential, Bucket: q.Bucket})
		if err != nil || !reflect.DeepEqual(sums, quota.AddUp(want)) {
			t.Fatalf("seed %d: sums %+v, %v\nof %+v", seed, sums, err, want)
		}
	}
	if left == 0 || denied == 0 || allowed == 0 {
		t.Errorf("%d left, %d denied, %d allowed", left, denied, allowed)
	}
}

// TestEntriesLeaveWithinAGroup: each charge of a group is decided at its own stamp, whether an entry
// leaves the window at each of them or only at the last.
func TestEntriesLeaveWithinAGroup(t *testing.T) {
	t.Parallel()
	for units, at := range map[int64]time.Duration{50: time.Minute,
		90: time.Minute - 4*time.Microsecond} {
		s, l := clocked(t)
		group := make([]quota.Charge, 5)
		for i := range group {
			group[i] = one("k", 10)
			group[i].Limits = []quota.Limit{{Bucket: "default", Units: units,
				Window: quota.Sliding(time.Minute)}}
			allow(t, l, group[i])
		}
		s.SetNow(t, start.Add(at))
		decisions, err := l.store.ChargeTogether(t.Context(), group)
		last := decisions[len(decisions)-1]
		if err != nil || last == nil || !last.Allowed || last.Remaining["default"] != 0 {
			t.Errorf("%d units: %+v, %v", units, last, err)
		}
	}
}

// sameAs asks both, and compares their decisions.
func sameAs[Q any, D any](t *testing.T, rule, store func(ctx context.Context, q Q) (D, error), q Q) {
	t.Helper()
	want, err := rule(t.Context(), q)
	got, err2 := store(t.Context(), q)
	if !reflect.DeepEqual(got, want) || fmt.Sprint(err) != fmt.Sprint(err2) {
		t.Fatalf("%+v:\n%+v, %v\nwant\n%+v, %v", q, got, err2, want, err)
	}
}

func randomLimits(random *rand.Rand) (limits []quota.Limit) {
	day, err := quota.ParseWindow("day", "America/Los_Angeles")
	if err != nil {
		panic(err)
	}
	windows := []quota.Window{quota.Sliding(24 * time.Hour), quota.Sliding(time.Hour),
		quota.Sliding(time.Minute), day}
	random.Shuffle(len(windows), func(i, j int) { windows[i], windows[j] = windows[j], windows[i] })
	for _, w := range windows[:1+random.IntN(len(windows))] {
		limits = append(limits, quota.Limit{Bucket: "default", Window: w,
			Units: 40 + random.Int64N(200), Headroom: random.Int64N(10)})
	}
	return limits
}
