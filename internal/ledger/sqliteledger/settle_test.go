package sqliteledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/quota/quotatest"
)

func settle(t *testing.T, l *Ledger, id string, units int64) (quota.Decision, error) {
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
			for range maxRewritten / 100 {
				if d, err := l.Charge(context.Background(), aCharge(1, day(100_000))); err != nil {
					t.Error(d, err)
				}
			}
		})
	}
	all.Wait()
	before := dump(t, l, "key1")
	if d, err := settle(t, l, "default.first", 20); !errors.Is(err, quota.ErrSettledLate) {
		t.Errorf("%+v, %v", d, err)
	}
	if dump(t, l, "key1") != before {
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
	if used := u.Buckets[0].Limits[0].Used; err != nil || used != 20+40+maxRewritten {
		t.Errorf("%d used, %v", used, err)
	}
	sound(t, l, "key1")
}

// Entries that a call finds to be due stay, also when that call is refused.
func TestLapseStays(t *testing.T) {
	for name, refused := range map[string]func(*Ledger) error{
		"settle": func(l *Ledger) error { _, err := settle(t, l, "default.none", 1); return err },
		"release": func(l *Ledger) error {
			_, err := l.Release(t.Context(), "key1", "default.held")
			return err
		},
		"charge": func(l *Ledger) error {
			c := aCharge(1, day(100))
			c.Reservation = "default.none"
			_, err := l.Charge(t.Context(), c)
			return err
		},
	} {
		l, now := clocked(t)
		holdFor(t, l, "default.held", 30, time.Minute)
		*now = now.Add(time.Hour)
		if err := refused(l); !errors.Is(err, quota.ErrNoReservation) {
			t.Errorf("%s: %v", name, err)
		}
		if n := number(t, l, "SELECT count(*) FROM entries"); n != 1 {
			t.Errorf("%s: %d entries", name, n)
		}
	}
}

// 1,000 holds that lapse at once become entries in one step, by whoever looks at the bucket first:
// stamps rise, totals add up, and what is settled late finds its own.
func TestManyLapseAtOnce(t *testing.T) {
	const holds = 1000
	path := file(t)
	l, now := open(t, path), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	l.Now = func() time.Time { return now }
	var all sync.WaitGroup
	for worker := range 100 {
		all.Go(func() {
			for i := worker; i < holds; i += 100 {
				_, err := l.Reserve(context.Background(), quota.Reserve{
					Credential: "key1", ID: fmt.Sprintf("default.r%d", i), Lapse: quota.LapseCharge,
					Costs: []quota.Cost{{Bucket: "default", Units: int64(1 + i%3)}},
					TTL:   time.Minute + time.Duration(i%7)*time.Millisecond, Limits: day(100_000),
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	now = now.Add(time.Hour)
	for range 20 { // handles, as many processes would have
		all.Go(func() {
			l, err := Open(context.Background(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer l.Close()
			l.Now = func() time.Time { return now }
			u, err := l.Usage(context.Background(), "key1", day(100_000))
			if err != nil || u.Buckets[0].Limits[0].Used != 1999 || u.Buckets[0].Held != 0 {
				t.Errorf("%+v, %v", u, err)
			}
		})
	}
	all.Wait()
	entries(t, l, holds)
	if d, err := settle(t, l, "default.r77", 1); err != nil || d.Entry != "r77" {
		t.Errorf("%+v, %v", d, err)
	}
	for _, e := range log(t, l) {
		if e.ID == "r77" && e.Units != 1 {
			t.Errorf("%+v", e)
		}
	}
	sound(t, l, "key1")
}

// A hold that nobody can read denies, also once it has expired.
func TestUnreadableHoldThatLapses(t *testing.T) {
	l, now := clocked(t)
	holdFor(t, l, "default.held", 30, time.Minute)
	exec(t, l, "UPDATE reservations SET drawn = -3")
	*now = now.Add(time.Hour)
	d, err := l.Charge(t.Context(), aCharge(41, day(100)))
	if d.Allowed || !errors.Is(err, quota.ErrLedgerUnusable) {
		t.Errorf("%+v, %v", d, err)
	}
	found, err := l.CheckBucket(t.Context(), "key1", "default", true)
	if err != nil || len(found) != 1 || !strings.Contains(found[0].What, "default.held") {
		t.Errorf("%+v, %v", found, err)
	}
	mustCharge(t, l, 41, day(100))
}

// Entries of lapses are known as long as they are kept, and not for ever.
func TestLapsesAreForgotten(t *testing.T) {
	l, now := clocked(t)
	holdFor(t, l, "default.a", 1, time.Minute)
	*now = now.Add(quota.Retention)
	holdFor(t, l, "default.b", 1, time.Minute)
	if n := number(t, l, "SELECT count(*) FROM lapsed"); n != 1 {
		t.Errorf("%d are known, want 1", n)
	}
	*now = now.Add(time.Hour)
	mustCharge(t, l, 1, day(100))
	if n := number(t, l, "SELECT count(*) FROM lapsed"); n != 1 {
		t.Errorf("%d are known, want 1 again", n)
	}
}

// Reservations of which all was drawn before they expired are forgotten after a while.
func TestDrawnHoldsAreForgotten(t *testing.T) {
	l, now := clocked(t)
	holdFor(t, l, "default.drawn", 5, time.Minute)
	c := aCharge(5, day(100))
	c.Reservation = "default.drawn"
	if d, err := l.Charge(t.Context(), c); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	*now = now.Add(quota.Retention + 2*time.Hour)
	holdFor(t, l, "default.next", 1, time.Minute)
	*now = now.Add(time.Hour)
	mustCharge(t, l, 1, day(100))
	if n := number(t, l, "SELECT count(*) FROM reservations"); n > 0 {
		t.Errorf("%d reservations are kept", n)
	}
}

// As long as a reservation that becomes an entry is open, a denial takes others beside it to become
// some, too, though all of it was drawn: as the model does.
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

// What reservations can turn out to take, lowered by hand, is counted again.
func TestAtMostTooLow(t *testing.T) {
	l, _ := clocked(t)
	holdFor(t, l, "default.held", 30, time.Hour)
	exec(t, l, "UPDATE buckets SET at_most = 10")
	for want := 1; want >= 0; want-- {
		found, err := l.CheckBucket(t.Context(), "key1", "default", true)
		if err != nil || len(found) != want {
			t.Errorf("found %+v, %v; want %d", found, err, want)
		}
	}
	learned, err := l.Learn(t.Context(), quota.Learn{Credential: "key1", Limit: day(100)[0], Remaining: 60})
	if err != nil || learned.Thought != 65 || learned.Units != 5 {
		t.Errorf("%+v, %v", learned, err)
	}
}

// The end of an anchored window, or what others used, that cannot be read denies, until it is
// forgotten.
func TestUnreadableReset(t *testing.T) {
	l, now := clocked(t)
	mustCharge(t, l, 1, day(100))
	exec(t, l, "UPDATE buckets SET reset_at = -1, others = '[{'")
	d, err := l.Charge(t.Context(), aCharge(1, day(100)))
	if d.Allowed || !errors.Is(err, quota.ErrLedgerUnusable) {
		t.Errorf("%+v, %v", d, err)
	}
	found, err := l.CheckBucket(t.Context(), "key1", "default", true)
	if err != nil || len(found) != 2 {
		t.Errorf("%+v, %v", found, err)
	}
	mustCharge(t, l, 1, day(100))
	w, err := quota.ParseWindow("anchored 1h", "")
	if err != nil {
		t.Fatal(err)
	}
	learned, err := l.Learn(t.Context(), quota.Learn{Credential: "key1", Remaining: -1,
		Limit: quota.Limit{Bucket: "default", Units: 9, Window: w}, Reset: now.Add(time.Minute)})
	if err != nil || !learned.Reset.Equal(now.Add(time.Minute)) || learned.Thought != 7 {
		t.Errorf("%+v, %v", learned, err)
	}
}
