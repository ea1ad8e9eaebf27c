package redisstore_test

import (
	"cmp"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// meanwhile runs a function between the first snapshot and its commit. decided counts the decisions
// that reached their commit.
func (l *env) meanwhile(run func()) (decided *int) {
	decided = new(int)
	l.store.BeforeCommit(func() {
		if *decided++; *decided == 1 {
			run()
		}
	})
	return decided
}

// TestFailoverBetweenSnapshotAndCommit: a replica that lacks the last change has another revision,
// even if as many changes were made on it since, and both leave the same newest entry and holds.
func TestFailoverBetweenSnapshotAndCommit(t *testing.T) {
	t.Parallel()
	s, l := clocked(t)
	other := openEnv(t, s.URL())
	first, second := one("k", 10), one("k", 10)
	d1, d2 := allow(t, l, first), allow(t, l, second)
	allow(t, l, one("k", 30))
	replicated := map[string]string{}
	for _, key := range []string{logOfK, stateOfK, "quota:{k}:default:sums:2026-06-01"} {
		replicated[key] = l.client.Dump(t.Context(), key).Val()
	}
	noError(t, l.Cancel(t.Context(), first, d1)) // has not reached the replica
	decided := l.meanwhile(func() {
		for key, value := range replicated {
			must(t, l.client.RestoreReplace(t.Context(), key, 0, value))
		}
		if err := other.Cancel(t.Context(), second, d2); err != nil {
			t.Error(err)
		}
	})
	setAside(t, l, reserveOf("default.r", 10, time.Hour))
	if *decided != 2 {
		t.Errorf("decided %d times, want again after the failover", *decided)
	}
	sound(t, l)
}

// TestLostRaceLeavesHolds: what was decided in a lost race changes no hold that the process keeps.
func TestLostRaceLeavesHolds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l, other := openEnv(t, s.URL()), openEnv(t, s.URL())
	allow(t, l, one("k", 5))
	setAside(t, l, reserveOf("default.a", 10, time.Hour))
	setAside(t, l, reserveOf("default.b", 20, time.Hour))
	l.meanwhile(func() { allow(t, other, one("k", 1)) })
	given, err := l.Release(t.Context(), released("default.a"))
	if err != nil || given["default"] != 10 {
		t.Errorf("given back %v, %v", given, err)
	}
	u, err := l.Usage(t.Context(), "k", hundred)
	if err != nil || u.Buckets[0].Held != 20 {
		t.Errorf("%+v, %v", u, err)
	}
	sound(t, l)
}

// TestNobodyStarves: a hold is decided at once while plain charges never stop.
func TestNobodyStarves(t *testing.T) {
	t.Parallel()
	s, l := clocked(t) // the lock cannot expire before the commit
	races := 0
	other := openEnv(t, s.URL())
	limits := []quota.Limit{{Bucket: "default", Units: 1_000_000, Window: hundred[0].Window}}
	l.store.BeforeCommit(func() {
		races++
		if l.client.Exists(t.Context(), "quota:{k}::lock").Val() == 0 {
			c := one("k", 1)
			c.Limits = limits
			allow(t, other, c)
		}
	})
	r := reserveOf("default.r", 20, time.Hour)
	r.Limits = limits
	if d, err := l.Reserve(t.Context(), r); err != nil || !d.Allowed || races != 4 {
		t.Errorf("after %d races: %+v, %v", races, d, err)
	}
	if n := l.client.Exists(t.Context(), "quota:{k}::lock").Val(); n != 0 {
		t.Error("the lock is still there")
	}
	must(t, l.client.Set(t.Context(), "quota:{k}::lock", "another", 0))
	c := one("k", 1)
	c.Limits = limits
	decisions, err := other.store.ChargeTogether(t.Context(), []quota.Charge{c})
	if err != nil || decisions[0] != nil {
		t.Errorf("a plain charge during the lock: %+v, %v", decisions[0], err)
	}
}

// TestLockedSinceTheSnapshot: a writer that meets the lock of another process only at its commit
// writes nothing, and decides again.
func TestLockedSinceTheSnapshot(t *testing.T) {
	t.Parallel()
	l := openEnv(t, redistest.Start(t, redistest.Options{}).URL())
	decided := l.meanwhile(func() {
		must(t, l.client.Set(t.Context(), "quota:{k}::lock", "another", 0))
	})
	refused := 0
	l.client.AddHook(afterReply{"locked", func() {
		refused++
		must(t, l.client.Del(t.Context(), "quota:{k}::lock"))
	}})
	setAside(t, l, reserveOf("default.r", 10, time.Hour))
	if *decided != 2 || refused != 1 {
		t.Errorf("decided %d times, refused %d, want 2 and 1", *decided, refused)
	}
	sound(t, l)
}

// TestClaimRaced: of two processes that find a piece of work free, one gets it.
func TestClaimRaced(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l, other := openEnv(t, s.URL()), openEnv(t, s.URL())
	claim := func(holder string) quota.Claim {
		return quota.Claim{Credential: "k", Name: "work", Holder: holder, TTL: time.Minute}
	}
	l.meanwhile(func() { noError(t, only(other.Claim(t.Context(), claim("second")))) })
	if state, err := l.Claim(t.Context(), claim("first")); err != nil || state != quota.ClaimHeld {
		t.Errorf("%v, %v", state, err)
	}
}

// TestLapsesRaced: a process that finds a hold lapsed, while another process writes its entry
// first, makes its own decision once.
func TestLapsesRaced(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(*env) error{
		"charge": func(l *env) error { return only(l.Charge(t.Context(), one("k", 5))) },
		"hold": func(l *env) error {
			return only(l.Reserve(t.Context(), reserveOf("default.new", 5, time.Hour)))
		},
		"settle":  func(l *env) error { return only(l.Settle(t.Context(), settleOf("default.open", 5))) },
		"release": func(l *env) error { return only(l.Release(t.Context(), released("default.open"))) },
		"adjust":  func(l *env) error { return only(l.Adjust(t.Context(), adjustOf("k", 5))) },
	} {
		t.Run(name, func(t *testing.T) {
			s, l := clocked(t)
			other := openEnv(t, s.URL())
			lapses := reserveOf("default.lapses", 10, time.Minute)
			lapses.Lapse = quota.LapseCharge
			setAside(t, l, lapses)
			setAside(t, l, reserveOf("default.open", 5, time.Hour))
			s.SetNow(t, start.Add(2*time.Minute))
			l.meanwhile(func() { allow(t, other, one("k", 1)) })
			noError(t, decide(l))
			u, err := l.Usage(t.Context(), "k", hundred)
			noError(t, err)
			got := u.Buckets[0].Held + u.Buckets[0].Limits[0].Used
			if want := map[string]int64{"settle": 16, "release": 11}[name]; got != cmp.Or(want, 21) {
				t.Errorf("%d units used and held", got)
			}
			sound(t, l)
		})
	}
}

// TestReadAgain: a reading that looks into the log after its snapshot is repeated if the log was
// rewritten meanwhile, and not if it has new entries.
func TestReadAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l, other := openEnv(t, s.URL()), openEnv(t, s.URL())
	c := one("k", 5)
	d := allow(t, l, c)
	allow(t, l, one("k", 6))
	read := func(meanwhile func()) (calls, entries int) {
		scope := quota.Scope{Credential: "k", Buckets: []string{"default"}}
		noError(t, l.store.View(t.Context(), scope, func(a *quota.Account) error {
			if calls++; calls == 1 {
				meanwhile()
			}
			list, err := a.Buckets[0].Log.Since(0, 10)
			entries = len(list)
			return err
		}))
		return calls, entries
	}
	if calls, entries := read(func() { allow(t, other, one("k", 7)) }); calls != 1 || entries != 2 {
		t.Errorf("during a charge: read %d times, %d entries", calls, entries)
	}
	if calls, entries := read(func() { noError(t, other.Cancel(t.Context(), c, d)) }); calls != 2 ||
		entries != 2 {
		t.Errorf("during a cancellation: read %d times, %d entries", calls, entries)
	}
}
