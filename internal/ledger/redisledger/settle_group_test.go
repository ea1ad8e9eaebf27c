package redisledger

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// heldAs is a hold in the bucket "default" of k that may take up to 50.
func heldAs(id string) quota.Reserve {
	r := reserveOf(quota.ReservationID(id, "default"), 20, time.Hour)
	r.Costs[0].Most, r.Lapse, r.Limits = 50, quota.LapseCharge, endless
	r.Labels = quota.Labels{"job": "a"}
	return r
}

func ended(id string, units int64) quota.Settle {
	s := settleOf(quota.ReservationID(id, "default"), units)
	s.ID, s.Limits, s.Labels = "s"+id, nil, quota.Labels{"job": "a"}
	return s
}

// Settlements that queue are one script, and each has an answer of its own.
func TestSettlementsTogether(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	c := one("k", 1)
	c.Labels = quota.Labels{"job": "a"}
	allow(t, l, c)
	for _, id := range strings.Fields("a b c d e f g") {
		setAside(t, l, heldAs(id))
	}
	settle := func(s quota.Settle, want error, units int64) func() {
		return func() {
			d, err := l.Settle(t.Context(), s)
			if !errors.Is(err, want) || err == nil && (d.Units["default"] != units || d.Entry != s.ID) {
				t.Errorf("%s of %d: %+v, %v", s.Reservation, units, d, err)
			}
		}
	}
	r := settling(ended("a", 1))
	q := l.settling.Get(r.audience())
	count := func() (n int) {
		fmt.Sscanf(scripts(t, l.client), "calls=%d", &n)
		return n
	}
	settle(ended("z", 1), quota.ErrNoReservation, 0)() // loads the script
	before := count()
	behindOne(t, q, nil, settle(ended("a", 5), nil, 5), settle(ended("b", 70), nil, 70),
		settle(ended("c", 20), nil, 20))
	if n := count() - before; n != 1 {
		t.Errorf("%d scripts for three settlements", n)
	}

	// One that cannot be settled touches no other, and a second time is answered as the first.
	within := ended("d", 21)
	within.Within = true
	behindOne(t, q, nil, settle(ended("e", 1), nil, 1), settle(within, quota.ErrReservationShort, 0),
		settle(ended("x", 9), quota.ErrNoReservation, 0), settle(ended("f", 3), nil, 3),
		settle(ended("a", 5), nil, 5), settle(ended("a", 6), quota.ErrKeyReused, 0))
	behindOne(t, q, nil, settle(ended("g", 2), nil, 2), settle(ended("g", 2), nil, 2))

	var got []string
	for _, e := range entriesOf(t, l, "k")[1:] {
		got = append(got, fmt.Sprint(e.ID, e.Units, e.Labels["job"]))
	}
	if want := "sa5a sb70a sc20a se1a sf3a sg2a"; strings.Join(got, " ") != want {
		t.Errorf("%v are in the log; want %s", got, want)
	}
	if left, err := l.Reservations(t.Context(), "k", "default"); err != nil || len(left) != 1 {
		t.Errorf("%v are held, %v; want d alone", left, err)
	}
}

// Whoever holds and settles beside others, each is booked as it was billed, and nothing stays held.
func TestHoldsAndSettlementsOfMany(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	var all sync.WaitGroup
	billed := func(caller, i int) int64 { return int64(1 + (7*caller+i)%60) }
	var want int64
	for caller := range 20 {
		for i := range 30 {
			want += billed(caller, i)
		}
		all.Go(func() {
			for i := range 30 {
				id := fmt.Sprintf("c%dx%d", caller, i)
				if d, err := l.Reserve(t.Context(), heldAs(id)); err != nil || !d.Allowed {
					t.Error(d, err)
					return
				}
				d, err := l.Settle(t.Context(), ended(id, billed(caller, i)))
				if err != nil || d.Units["default"] != billed(caller, i) || d.Entry != "s"+id {
					t.Error(d, err)
				}
			}
		})
	}
	all.Wait()
	var got, total int64
	entries := entriesOf(t, l, "k")
	for _, e := range entries {
		if total += e.Units; e.Total != total {
			t.Errorf("a total of %d after %d", e.Total, total)
		}
		got += e.Units
	}
	u, err := l.Usage(t.Context(), "k", hundred)
	if got != want || len(entries) != 600 || err != nil || u.Buckets[0].Held != 0 {
		t.Errorf("%d units in %d entries, and %+v is held, %v; want %d", got, len(entries), u, err, want)
	}
	sound(t, l, "k")
}
