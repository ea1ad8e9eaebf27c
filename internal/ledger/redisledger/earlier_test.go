package redisledger

import (
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// Who reads the log of a bucket that an earlier version wrote finds the holds in it that have lapsed.
func TestLapsedOfAnEarlierVersion(t *testing.T) {
	s, l := clocked(t)
	for name, read := range map[string]func() int64{
		"entries": func() int64 { return int64(len(entriesOf(t, l, "k"))) + 4 },
		"between": func() int64 {
			n, err := l.Between(t.Context(), "k", "default", start.Add(-time.Hour), start.Add(days(1)))
			if err != nil {
				t.Error(err)
			}
			return n
		},
		"sums": func() (n int64) {
			sums, err := l.Sums(t.Context(), quota.SumQuery{Credential: "k", Bucket: "default"})
			if err != nil {
				t.Error(err)
			}
			for _, sum := range sums {
				n += sum.Units
			}
			return n
		},
	} {
		forgetAll(t, l)
		s.SetNow(t, start)
		r := reserveOf("default.r", 5, time.Minute)
		r.Lapse = quota.LapseCharge
		allow(t, l, one("k", 1))
		setAside(t, l, r)
		earlier(t, l.client, "k", 64)
		s.SetNow(t, start.Add(time.Hour))
		if n := read(); n != 6 {
			t.Errorf("%s: %d, want 6", name, n)
		}
		sound(t, l, "k")
	}
}

// What an earlier version held stays held, whatever else of its bucket was lost.
func TestHalfOfAnEarlierVersionLost(t *testing.T) {
	_, l := clocked(t)
	for name, lose := range map[string]func(){
		"numbers":     func() { stateLost(t, l.client) },
		"whole state": func() { must(t, l.client.Del(t.Context(), stateOfK)) },
		"reservation": func() { must(t, l.client.HDel(t.Context(), stateOfK, "r:r")) },
		"list":        func() { must(t, l.client.Del(t.Context(), holdsOfK)) },
	} {
		t.Run(name, func(t *testing.T) {
			reserved(t, l)
			earlier(t, l.client, "k", 64)
			lose()
			for range 2 {
				c := one("k", 40)
				c.DryRun = true
				if d, err := l.Charge(t.Context(), c); err != nil || !d.Allowed {
					t.Errorf("40 beside 60 held: %+v, %v", d, err)
				}
				c = one("k", 41)
				if d, err := l.Charge(t.Context(), c); d.Allowed ||
					(err != nil) != (name == "reservation") {
					t.Errorf("41 beside 60 held: %+v, %v", d, err)
				}
			}
			if name == "reservation" {
				mended(t, l)
			}
		})
	}
	reserved(t, l)
	earlier(t, l.client, "k", 64)
	stateLost(t, l.client)
	if d, err := l.Settle(t.Context(), settleOf("default.r", 3)); err != nil || !d.Allowed {
		t.Errorf("the first call settles: %+v, %v", d, err)
	}
}

// A list that was deleted while there was no reservation is made again, with an expiry; a check says
// that it is missing. What the state counts of holds means nothing without any.
func TestListDeletedWhileEmpty(t *testing.T) {
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	setAside(t, l, reserveOf("default.r", 5, time.Minute))
	if _, err := l.Release(t.Context(), "k", "default.r"); err != nil {
		t.Fatal(err)
	}
	withState(9, 1e15)(t, l.client)
	if u, err := l.Usage(t.Context(), "k", hundred); err != nil || u.Buckets[0].AtMost != 0 {
		t.Errorf("%+v, %v", u, err)
	}
	sound(t, l, "k")
	must(t, l.client.Del(t.Context(), holdsOfK))
	found, err := l.CheckBucket(t.Context(), "k", "default", false)
	if err != nil || len(found) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	setAside(t, l, reserveOf("default.r", 5, time.Minute))
	lasts(t, l, holdsOfK)
	sound(t, l, "k")
	if _, err := l.Release(t.Context(), "k", "default.r"); err != nil {
		t.Fatal(err)
	}
	must(t, l.client.Del(t.Context(), holdsOfK))
	mended(t, l)
}

// Units that come off entries of several ten minutes come off the sums of each.
func TestAdjustedSumsOfTwoGrains(t *testing.T) {
	s, l := clocked(t)
	allow(t, l, one("k", 1))
	for i := range 2 {
		s.SetNow(t, start.Add(time.Duration(i+1)*10*time.Minute))
		allow(t, l, one("k", 5))
	}
	if _, err := l.addUp(t.Context(), "k", "default"); err != nil {
		t.Fatal(err)
	}
	s.SetNow(t, start.Add(time.Hour))
	if _, err := l.Adjust(t.Context(), adjustOf("k", -10)); err != nil {
		t.Fatal(err)
	}
	sound(t, l, "k")
}
