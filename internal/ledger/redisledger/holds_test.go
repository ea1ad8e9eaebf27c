package redisledger

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

var holdsOfK = holdsKey("k", "default")

// reserved is a ledger with 60 of 100 units set aside in the bucket "default" of "k".
func reserved(t *testing.T, l *Ledger) {
	t.Helper()
	forgetAll(t, l)
	reserve(t, l, "k", "default.r", 60)
}

func forgetAll(t *testing.T, l *Ledger) {
	t.Helper()
	must(t, l.client.FlushAll(t.Context()))
	l.told.last = nil // it knows no labels any more
}

func reserve(t *testing.T, l *Ledger, credential, id string, units int64) {
	t.Helper()
	d, err := l.Reserve(t.Context(), quota.Reserve{
		Credential: credential, ID: id, Units: units, TTL: time.Hour, Limits: hundred,
	})
	if err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
}

// sixtyHeld makes sure that 60 of 100 units are held, and no more and no less.
func sixtyHeld(t *testing.T, l *Ledger) {
	t.Helper()
	for units, allowed := range map[int64]bool{40: true, 41: false} {
		c := one("k", units)
		c.DryRun = true
		if d, err := l.Charge(t.Context(), c); err != nil || d.Allowed != allowed {
			t.Errorf("%d beside 60 held of 100: %+v, %v", units, d, err)
		}
	}
	u, err := l.Usage(t.Context(), "k", hundred)
	if err != nil || u.Buckets[0].Held != 60 {
		t.Errorf("%+v, %v; want 60 held", u, err)
	}
}

// A reservation that cannot be read is an error for who uses it. Its units stay held.
func TestDamagedReservation(t *testing.T) {
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	for _, text := range []string{
		"", "hello", "-5:9999999999999999:0:5:1:0:", "1.5:9999999999999999:0:5:1:0:",
		"99999999999999999999:9999999999999999:0:5:1:0:", "5:x", "7:9999999999999999:0:5:1:0:",
	} {
		t.Run(text, func(t *testing.T) {
			reserved(t, l)
			must(t, l.client.HSet(t.Context(), stateOfK, "r:r", text))
			sixtyHeld(t, l)
			for name, err := range used(t, l) {
				if !errors.Is(err, quota.ErrLedgerUnusable) || !says(err, "default.r") {
					t.Errorf("%s: %v", name, err)
				}
			}
			found, err := l.CheckBucket(t.Context(), "k", "default", true)
			if err != nil || len(found) == 0 {
				t.Errorf("found %+v, %v", found, err)
			}
			if found, err := l.CheckBucket(t.Context(), "k", "default", false); len(found) > 0 ||
				err != nil {
				t.Errorf("found after the repair: %+v, %v", found, err)
			}
		})
	}
}

// used is what each use of the reservation is answered with.
func used(t *testing.T, l *Ledger) map[string]error {
	errs := make(map[string]error)
	_, errs["release"] = l.Release(t.Context(), "k", "default.r")
	_, errs["commit"] = l.Commit(t.Context(), quota.Commit{
		Credential: "k", Reservation: "default.r", ID: "x", Units: 1, Limits: hundred,
	})
	c := one("k", 1)
	c.Reservation = "default.r"
	_, errs["draw"] = l.Charge(t.Context(), c)
	return errs
}

// What somebody did by hand to the list of reservations, or to what the state knows of it, makes no
// room. A check finds it, and after a repair the units are held as before.
func TestDamagedHolds(t *testing.T) {
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	member := l.client.ZRange
	for _, c := range []struct {
		name  string
		do    func(t *testing.T)
		still bool // charges are decided meanwhile
	}{
		{"list deleted", func(t *testing.T) { must(t, l.client.Del(t.Context(), holdsOfK)) }, false},
		{"taken out of the list", func(t *testing.T) {
			must(t, l.client.ZRem(t.Context(), holdsOfK, member(t.Context(), holdsOfK, 0, 0).Val()[0]))
		}, false},
		{"another one added", func(t *testing.T) {
			must(t, l.client.ZAdd(t.Context(), holdsOfK, redis.Z{Score: 1, Member: "5:x"}))
		}, false},
		{"listed with fewer units", func(t *testing.T) {
			z := l.client.ZRangeWithScores(t.Context(), holdsOfK, 0, 0).Val()[0]
			must(t, l.client.ZRem(t.Context(), holdsOfK, z.Member))
			must(t, l.client.ZAdd(t.Context(), holdsOfK, redis.Z{Score: z.Score, Member: "6:r"}))
		}, true},
		{"listed at another time", func(t *testing.T) {
			must(t, l.client.ZIncrBy(t.Context(), holdsOfK, 1e9, "60:r"))
		}, true},
		{"listed as no number", func(t *testing.T) {
			must(t, l.client.ZRem(t.Context(), holdsOfK, "60:r"))
			must(t, l.client.ZAdd(t.Context(), holdsOfK, redis.Z{Score: 1, Member: "r"}))
		}, false},
		{"none counted", func(t *testing.T) { withState(3, 0)(t, l.client) }, false},
		{"too many counted", func(t *testing.T) { withState(3, 2)(t, l.client) }, false},
		{"held is no number", func(t *testing.T) { withState(7, math.NaN())(t, l.client) }, false},
		{"held more", func(t *testing.T) { withState(7, 61)(t, l.client) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			reserved(t, l)
			c.do(t)
			d, err := l.Charge(t.Context(), one("k", 41))
			if d.Allowed || (err == nil) != c.still ||
				err != nil && !says(err, "bucket default of k", "quotactl ledger check --repair") {
				t.Errorf("41 beside 60 held: %+v, %v", d, err)
			}
			if found, err := l.CheckBucket(t.Context(), "k", "default", true); err != nil ||
				len(found) == 0 {
				t.Errorf("found %+v, %v", found, err)
			}
			if found, err := l.CheckBucket(t.Context(), "k", "default", false); err != nil ||
				len(found) > 0 {
				t.Errorf("found after the repair: %+v, %v", found, err)
			}
			sixtyHeld(t, l)
			if left, err := l.Release(t.Context(), "k", "default.r"); err != nil || left != 60 {
				t.Errorf("released %d, %v", left, err)
			}
		})
	}
}

// Units that are set aside count when the state is lost, whole or in part, until they expire.
func TestHoldsWithoutState(t *testing.T) {
	s := redistest.Start(t, redistest.Options{Clock: true})
	l := open(t, s.URL())
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for name, lose := range map[string]func(){
		"numbers":              func() { stateLost(t, l.client) },
		"whole state":          func() { must(t, l.client.Del(t.Context(), stateOfK)) },
		"numbers and the list": func() { stateLost(t, l.client); must(t, l.client.Del(t.Context(), holdsOfK)) },
	} {
		t.Run(name, func(t *testing.T) {
			now = now.AddDate(0, 0, 1)
			s.SetNow(t, now)
			reserved(t, l)
			lose()
			sixtyHeld(t, l)
			if d, err := l.Charge(t.Context(), one("k", 40)); err != nil || !d.Allowed {
				t.Errorf("40 beside 60 held of 100: %+v, %v", d, err)
			}
			s.SetNow(t, now.Add(time.Hour-time.Microsecond))
			if d, err := l.Charge(t.Context(), one("k", 1)); err != nil || d.Allowed {
				t.Errorf("1 beside 40 used and 60 held of 100: %+v, %v", d, err)
			}
			s.SetNow(t, now.Add(time.Hour))
			if d, err := l.Charge(t.Context(), one("k", 60)); err != nil || !d.Allowed {
				t.Errorf("60 beside 40 used, when the others have expired: %+v, %v", d, err)
			}
			if found, err := l.CheckBucket(t.Context(), "k", "default", false); err != nil ||
				len(found) > 0 {
				t.Errorf("found %+v, %v", found, err)
			}
		})
	}
}

// earlier makes of a bucket what the version before the list of reservations wrote: a state of
// seven numbers, and no list.
func earlier(t *testing.T, c redis.UniversalClient, credential string) {
	t.Helper()
	state := stateKey(credential, "default")
	text := c.HGet(t.Context(), state, stateField).Val()
	must(t, c.HSet(t.Context(), state, stateField, text[:56]))
	must(t, c.Del(t.Context(), holdsKey(credential, "default")))
}

// Whatever comes first to a bucket that an earlier version wrote is answered as if this one had,
// and leaves the same bucket behind.
func TestHoldsOfAnEarlierVersion(t *testing.T) {
	s := redistest.Start(t, redistest.Options{Clock: true})
	l := open(t, s.URL())
	s.SetNow(t, time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	draw := func(credential string) (quota.Charge, quota.Decision) {
		c := one(credential, 5)
		c.ID, c.Reservation = "drawn", "default.b"
		d, err := l.Charge(t.Context(), c)
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		return c, d
	}
	for name, first := range map[string]func(credential string, c quota.Charge, d quota.Decision) (any, error){
		"charge": func(credential string, _ quota.Charge, _ quota.Decision) (any, error) {
			c := one(credential, 15)
			c.ID = "first"
			return l.Charge(t.Context(), c)
		},
		"denial": func(credential string, _ quota.Charge, _ quota.Decision) (any, error) {
			return l.Charge(t.Context(), one(credential, 41))
		},
		"draw": func(credential string, _ quota.Charge, _ quota.Decision) (any, error) {
			c := one(credential, 3)
			c.ID, c.Reservation = "first", "default.b"
			return l.Charge(t.Context(), c)
		},
		"reserve": func(credential string, _ quota.Charge, _ quota.Decision) (any, error) {
			return l.Reserve(t.Context(), quota.Reserve{
				Credential: credential, ID: "default.first", Units: 7, TTL: time.Minute, Limits: hundred,
			})
		},
		"commit": func(credential string, _ quota.Charge, _ quota.Decision) (any, error) {
			return l.Commit(t.Context(), quota.Commit{
				Credential: credential, Reservation: "default.a", ID: "first", Units: 4, Limits: hundred,
			})
		},
		"release": func(credential string, _ quota.Charge, _ quota.Decision) (any, error) {
			return l.Release(t.Context(), credential, "default.a")
		},
		"cancel": func(_ string, c quota.Charge, d quota.Decision) (any, error) {
			return nil, l.Cancel(t.Context(), c, d)
		},
		"suspend": func(credential string, _ quota.Charge, _ quota.Decision) (any, error) {
			until := time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC)
			return nil, l.Suspend(t.Context(), credential, "default", until)
		},
		"usage": func(credential string, _ quota.Charge, _ quota.Decision) (any, error) {
			return l.Usage(t.Context(), credential, hundred)
		},
		"repair": func(credential string, _ quota.Charge, _ quota.Decision) (any, error) {
			return l.CheckBucket(t.Context(), credential, "default", true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			forgetAll(t, l)
			var answers, dumps []string
			for _, credential := range []string{"k", "twin"} {
				reserve(t, l, credential, "default.a", 20)
				reserve(t, l, credential, "default.b", 10)
				reserve(t, l, credential, "default.empty", 30)
				c := one(credential, 30)
				c.ID, c.Reservation = "all", "default.empty"
				if d, err := l.Charge(t.Context(), c); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
				c, d := draw(credential)
				if credential == "k" {
					earlier(t, l.client, credential)
				}
				answer, err := first(credential, c, d)
				answers = append(answers, fmt.Sprint(answer, err))
				last := one(credential, 1)
				last.ID = "last"
				if _, err := l.Charge(t.Context(), last); err != nil {
					t.Error(err)
				}
				dumps = append(
					dumps,
					strings.ReplaceAll(dump(t, l.client, credential), "{"+credential+"}", "{}"),
				)
				found, err := l.CheckBucket(t.Context(), credential, "default", false)
				if err != nil || len(found) > 0 {
					t.Errorf("found %+v, %v", found, err)
				}
			}
			if answers[0] != answers[1] {
				t.Errorf("answered\n%s, this version's\n%s", answers[0], answers[1])
			}
			if dumps[0] != dumps[1] {
				t.Errorf("left\n%s, this version's\n%s", dumps[0], dumps[1])
			}
		})
	}
}
