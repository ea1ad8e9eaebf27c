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

// twin is a ledger in Redis and the rule on a store in memory, with their clocks in step.
type twin struct {
	*testing.T
	*env
	server     *redistest.Server
	rule       *ledger.Ledger
	clock      *quotatest.Clock
	credential string
	limits     []quota.Limit

	left, denied, allowed int // charges that charge.lua left alone, denied and allowed
}

func newTwin(t *testing.T, s *redistest.Server, l *env, credential string,
	limits []quota.Limit) *twin {
	var clock quotatest.Clock
	return &twin{T: t, env: l, server: s, clock: &clock, credential: credential, limits: limits,
		rule: ledger.New(&memstore.Store{Now: clock.Now})}
}

func (w *twin) at(now time.Time) {
	w.clock.Set(w, now)
	w.server.SetNow(w, now)
}

// hold sets units aside in both ledgers.
func (w *twin) hold(id string, units int64, ttl time.Duration, lapse quota.Lapse) {
	sameAs(w.T, w.rule.Reserve, w.Reserve, quota.Reserve{Credential: w.credential,
		ID: quota.ReservationID(id, "default"), Limits: w.limits, TTL: ttl, Lapse: lapse,
		Costs: []quota.Cost{{Bucket: "default", Units: units}}})
}

// together makes the charges in one run of charge.lua, makes those that it leaves alone one by one,
// and requires that the rule decides all of them the same way.
func (w *twin) together(group []quota.Charge) {
	w.Helper()
	decisions, err := w.store.ChargeTogether(w.Context(), group)
	if err != nil {
		w.Fatal(err)
	}
	for i, d := range decisions {
		if d == nil {
			w.left++
			continue
		}
		want, err := w.rule.Charge(w.Context(), group[i])
		if err != nil || !reflect.DeepEqual(*d, want) {
			w.Fatalf("charge %d of %v at %v:\n%+v\nwant\n%+v, %v", i, group[i].Costs,
				w.clock.Now(), *d, want, err)
		}
		if d.Allowed {
			w.allowed++
		} else {
			w.denied++
		}
	}
	for i, d := range decisions {
		if d == nil {
			sameAs(w.T, w.rule.Charge, w.Charge, group[i])
		}
	}
}

// compare compares the logs, and the sums with the log.
func (w *twin) compare() {
	w.Helper()
	q := quota.Query{Credential: w.credential, Bucket: "default"}
	got, err := w.Entries(w.Context(), q)
	want, err2 := w.rule.Entries(w.Context(), q)
	if err != nil || err2 != nil || !reflect.DeepEqual(got, want) {
		w.Fatalf("the log is\n%+v\nwant\n%+v", got, want)
	}
	sums, err := w.Sums(w.Context(), quota.SumQuery{Credential: q.Credential, Bucket: q.Bucket})
	if err != nil || !reflect.DeepEqual(sums, quota.AddUp(want)) {
		w.Fatalf("sums %+v, %v\nof %+v", sums, err, want)
	}
}

// TestGroupsDecideAsTheRule: on random histories charge.lua decides groups of charges as the rule
// would one after the other, and leaves the others to it.
func TestGroupsDecideAsTheRule(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Clock: true})
	l := openEnv(t, s.URL())
	left, denied, allowed := 0, 0, 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newTwin(t, s, l, fmt.Sprintf("k%d", seed), randomLimits(random))
		now := start.Add(time.Duration(random.Int64N(48*3600)) * time.Second)
		for step := range 12 {
			now = now.Add(time.Duration(random.Int64N(int64(time.Hour))))
			if random.IntN(3) == 0 { // entries leave a window within a group
				now = now.Truncate(time.Minute).Add(time.Duration(random.IntN(3)) * time.Microsecond)
			}
			now = now.Truncate(time.Microsecond)
			w.at(now)
			if random.IntN(4) == 0 {
				w.hold(fmt.Sprintf("r%d", step), 1+random.Int64N(20),
					time.Duration(1+random.IntN(90))*time.Minute,
					[]quota.Lapse{quota.LapseRelease, quota.LapseCharge}[random.IntN(2)])
				continue
			}
			group := make([]quota.Charge, 1+random.IntN(20))
			for i := range group {
				group[i] = quota.Charge{Credential: w.credential, ID: fmt.Sprintf("c%d-%d", step, i),
					Limits: w.limits, Manual: random.IntN(4) == 0,
					Costs:  []quota.Cost{{Bucket: "default", Units: 1 + random.Int64N(30)}},
					Labels: quota.Labels{"job": fmt.Sprint(random.IntN(2)), "run": fmt.Sprint(i)}}
			}
			w.together(group)
		}
		w.compare()
		left, denied, allowed = left+w.left, denied+w.denied, allowed+w.allowed
	}
	if left == 0 || denied == 0 || allowed == 0 {
		t.Errorf("%d left, %d denied, %d allowed", left, denied, allowed)
	}
}

// TestEdgesWithinAGroup: each charge of a group is decided at its own stamp, whatever changes at
// one of them.
func TestEdgesWithinAGroup(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Clock: true})
	l := openEnv(t, s.URL())
	minute, calendar := quota.Sliding(time.Minute), quota.Window{Calendar: "minute", Zone: time.UTC}
	for i, c := range []struct {
		what    string
		window  quota.Window
		limit   int64
		held    time.Duration // how long 20 units are set aside
		charged int           // number of charges of 10 units before
		at      time.Duration // of the group
		units   []int64
		allowed int // of the group, by the script
	}{
		{"an entry leaves the window at each stamp", minute, 50, 0, 5, time.Minute,
			[]int64{10, 10, 10, 10, 10}, 5},
		{"an entry leaves at the last stamp", minute, 90, 0, 5, time.Minute - 4*time.Microsecond,
			[]int64{10, 10, 10, 10, 10}, 5},
		{"a hold expires at the last stamp", minute, 100, 30 * time.Second, 7,
			30*time.Second - time.Microsecond, []int64{5, 5}, 0},
		{"a hold expires after the last stamp", minute, 100, 30 * time.Second, 7,
			30*time.Second - 2*time.Microsecond, []int64{5, 5}, 2},
		{"a grain of the sums ends", minute, 100, 0, 1, 10*time.Minute - 2*time.Microsecond,
			[]int64{1, 2, 3, 4, 5}, 0},
		{"a minute of the calendar ends", calendar, 100, 0, 6, time.Minute - 2*time.Microsecond,
			[]int64{10, 10, 10, 10}, 0},
	} {
		w := newTwin(t, s, l, fmt.Sprintf("k%d", i), []quota.Limit{{Bucket: "default", Units: c.limit,
			Window: c.window}})
		group := func(units ...int64) (group []quota.Charge) {
			for _, n := range units {
				group = append(group, quota.Charge{Credential: w.credential, Limits: w.limits,
					ID: quota.NewID(time.Now()), Costs: []quota.Cost{{Bucket: "default", Units: n}}})
			}
			return group
		}
		w.at(start)
		if c.held > 0 {
			w.hold("r", 20, c.held, quota.LapseRelease)
		}
		for range c.charged {
			w.together(group(10))
		}
		w.at(start.Add(c.at))
		w.allowed = 0
		w.together(group(c.units...))
		w.compare()
		if w.allowed != c.allowed {
			t.Errorf("%s: the script allowed %d of %v", c.what, w.allowed, c.units)
		}
	}
}

// TestIdleOverMidnight: a process that last saw the server's clock a day ago adds its charge to the
// sums of the new day.
func TestIdleOverMidnight(t *testing.T) {
	t.Parallel()
	s, l := clocked(t)
	allow(t, l, one("k", 1))
	s.SetNow(t, start.Add(24*time.Hour))
	allow(t, openEnv(t, s.URL()), one("k", 1))
	allow(t, l, one("k", 1))
	sound(t, l)
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
