package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/quota/quotatest"
)

func settle(t *testing.T, l *env, id string, units int64) (quota.Decision, error) {
	t.Helper()
	return l.Settle(t.Context(), quota.Settle{Credential: "key1", Reservation: id, ID: "truth",
		Costs: []quota.Cost{{Bucket: "default", Units: units}}, Limits: day(100_000)})
}

// What is settled when 10,000 entries came after those of the lapse is settled as it was held; with
// one more, only if nothing has to come off.
func TestSettledTooLate(t *testing.T) {
	l, now := clocked(t)
	for _, id := range []string{"default.first", "default.second"} {
		holdFor(t, l, id, 30, time.Minute)
	}
	*now = now.Add(time.Hour)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range quota.MaxRewritten / 100 {
				if d, err := l.Charge(context.Background(), aCharge(1, day(100_000))); err != nil {
					t.Error(d, err)
				}
			}
		})
	}
	all.Wait()
	before := dump(t, l.path, "key1")
	if d, err := settle(t, l, "default.first", 20); !errors.Is(err, quota.ErrSettledLate) {
		t.Errorf("%+v, %v", d, err)
	}
	if dump(t, l.path, "key1") != before {
		t.Error("it changed the file")
	}
	if d, err := settle(t, l, "default.second", 20); err != nil || d.Entry != "second" {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := settle(t, l, "default.first", 40); err != nil || d.Entry != "truth" {
		t.Errorf("%+v, %v", d, err)
	}
	log(t, l)
	u, err := l.Usage(t.Context(), "key1", day(100_000))
	if used := u.Buckets[0].Limits[0].Used; err != nil || used != 20+40+quota.MaxRewritten {
		t.Errorf("%d used, %v", used, err)
	}
	sound(t, l)
}

// A reservation of which all was drawn becomes no entry, and holds back no other.
func TestRetryBesideDrawnHold(t *testing.T) {
	l, _ := clocked(t)
	var answers []string
	for _, on := range []quota.Ledger{l, &quotatest.Model{Now: l.Now}} {
		costs := func(units int64) []quota.Cost {
			return []quota.Cost{{Bucket: "default", Units: units}}
		}
		for id, lapse := range map[string]quota.Lapse{"a": quota.LapseCharge, "b": ""} {
			_, err := on.Reserve(t.Context(), quota.Reserve{Credential: "key1", Costs: costs(50),
				ID: "default." + id, Lapse: lapse, Limits: day(100), TTL: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
		}
		c := quota.Charge{Credential: "key1", ID: "e", Costs: costs(50), Limits: day(100),
			Reservation: "default.a"}
		for _, reservation := range []string{"default.a", ""} {
			c.Reservation = reservation
			d, err := on.Charge(t.Context(), c)
			answers = append(answers, fmt.Sprint(d, err))
		}
	}
	if answers[0] != answers[2] || answers[1] != answers[3] {
		t.Errorf("got\n%s, want\n%s", answers[:2], answers[2:])
	}
}

// Entries of lapses, and holds that are over, are forgotten in passing.
func TestLapsesAreForgotten(t *testing.T) {
	l, now := clocked(t)
	holdFor(t, l, "default.a", 1, time.Minute)
	mustReserve(t, l, "over", 1, "")
	*now = now.Add(time.Hour)
	mustCharge(t, l, 1, day(100))
	*now = now.Add(quota.Retention + time.Hour)
	holdFor(t, l, "default.b", 1, time.Minute)
	*now = now.Add(time.Hour)
	mustCharge(t, l, 1, day(100))
	if n := number(t, l, "SELECT count(*) FROM lapsed"); n != 1 {
		t.Errorf("%d lapses are known, want 1", n)
	}
	if n := number(t, l, "SELECT count(*) FROM holds"); n != 0 {
		t.Errorf("%d holds are kept", n)
	}
	sound(t, l)
}

func holdFor(t *testing.T, l *env, id string, units int64, ttl time.Duration) {
	t.Helper()
	d, err := l.Reserve(t.Context(), quota.Reserve{
		Credential: "key1", ID: id, Limits: day(100), TTL: ttl, Lapse: quota.LapseCharge,
		Costs:  []quota.Cost{{Bucket: "default", Units: units, Most: units + 5}},
		Labels: quota.Labels{"job": "sweep", "run": "r1"},
	})
	if err != nil || !d.Allowed {
		t.Fatalf("reserve: %+v, %v", d, err)
	}
}
