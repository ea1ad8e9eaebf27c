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

var (
	holdsOfK = holdsKey("k", "default")
	sixty    = packedNumber(60) + ":r"
)

// reserved is a ledger with 60 of 100 units set aside in the bucket "default" of "k".
func reserved(t *testing.T, l *Ledger) {
	t.Helper()
	forgetAll(t, l)
	setAside(t, l, reserveOf("default.r", 60, time.Hour))
}

func forgetAll(t *testing.T, l *Ledger) {
	t.Helper()
	must(t, l.client.FlushAll(t.Context()))
	l.told.last = nil // it knows no labels any more
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
			mended(t, l)
		})
	}
}

// used is what each use of the reservation is answered with.
func used(t *testing.T, l *Ledger) map[string]error {
	errs := make(map[string]error)
	_, errs["release"] = l.Release(t.Context(), "k", "default.r")
	_, errs["extend"] = l.Extend(t.Context(), extendOf("default.r"))
	_, errs["settle"] = l.Settle(t.Context(), settleOf("default.r", 1))
	c := one("k", 1)
	c.Reservation = "default.r"
	_, errs["draw"] = l.Charge(t.Context(), c)
	return errs
}

// What somebody did by hand to the list of reservations, or to what the state knows of it, makes no
// room. A check finds it, and after a repair the units are held as before.
func TestDamagedHolds(t *testing.T) {
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	remove := func(t *testing.T) { must(t, l.client.ZRem(t.Context(), holdsOfK, sixty)) }
	add := func(t *testing.T, at float64, member string) {
		must(t, l.client.ZAdd(t.Context(), holdsOfK, redis.Z{Score: at, Member: member}))
	}
	deleteList := func(t *testing.T) { must(t, l.client.Del(t.Context(), holdsOfK)) }
	state := func(field int, value float64) func(*testing.T) {
		return func(t *testing.T) { withState(field, value)(t, l.client) }
	}
	for _, c := range []struct {
		name  string
		do    func(t *testing.T)
		still bool // charges are decided meanwhile
	}{
		{"list deleted", deleteList, false},
		{"taken out of the list", remove, false},
		{"another one added", func(t *testing.T) { add(t, 1, packedNumber(5)+":x") }, false},
		{"listed with fewer units", func(t *testing.T) {
			at := l.client.ZScore(t.Context(), holdsOfK, sixty).Val()
			remove(t)
			add(t, at, packedNumber(6)+":r")
		}, true},
		{"listed at another time", func(t *testing.T) {
			must(t, l.client.ZIncrBy(t.Context(), holdsOfK, 1e9, sixty))
		}, true},
		{"listed as no number", func(t *testing.T) { remove(t); add(t, 1, "r") }, true},
		{"none counted", state(3, 0), false},
		{"too many counted", state(3, 2), false},
		{"held is no number", state(7, math.NaN()), false},
		{"held more", state(7, 61), true},
		{"one counted that becomes an entry", state(8, 1), true},
		{"estimates said to be too low", state(9, 5), true},
		{"none said to expire for long", state(10, 1<<52), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			reserved(t, l)
			c.do(t)
			d, err := l.Charge(t.Context(), one("k", 41))
			if d.Allowed || (err == nil) != c.still ||
				err != nil && !says(err, "bucket default of k", "quotactl ledger check --repair") {
				t.Errorf("41 beside 60 held: %+v, %v", d, err)
			}
			mended(t, l)
			sixtyHeld(t, l)
			if left, err := l.Release(t.Context(), "k", "default.r"); err != nil || left["default"] != 60 {
				t.Errorf("released %v, %v", left, err)
			}
		})
	}
}

// Units that are set aside count when the state is lost, whole or in part, until they expire.
func TestHoldsWithoutState(t *testing.T) {
	s, l := clocked(t)
	now := start
	for name, lose := range map[string]func(){
		"numbers":     func() { stateLost(t, l.client) },
		"whole state": func() { must(t, l.client.Del(t.Context(), stateOfK)) },
		"numbers and the list": func() {
			stateLost(t, l.client)
			must(t, l.client.Del(t.Context(), holdsOfK))
		},
	} {
		t.Run(name, func(t *testing.T) {
			now = now.AddDate(0, 0, 1)
			s.SetNow(t, now)
			reserved(t, l)
			lose()
			sixtyHeld(t, l)
			allow(t, l, one("k", 40))
			s.SetNow(t, now.Add(time.Hour-time.Microsecond))
			if d, err := l.Charge(t.Context(), one("k", 1)); err != nil || d.Allowed {
				t.Errorf("1 beside 40 used and 60 held of 100: %+v, %v", d, err)
			}
			s.SetNow(t, now.Add(time.Hour))
			allow(t, l, one("k", 60)) // the others have expired
			sound(t, l, "k")
		})
	}
}

// earlier makes of a bucket what an earlier version wrote: reservations as text, and a state of
// eight numbers, or of seven and no list of them.
func earlier(t *testing.T, c redis.UniversalClient, credential string, size int) {
	t.Helper()
	state, holds := stateKey(credential, "default"), holdsKey(credential, "default")
	fields := c.HGetAll(t.Context(), state).Val()
	must(t, c.HSet(t.Context(), state, stateField, fields[stateField][:size]))
	charges, extra := 0, int64(0)
	for field, value := range fields {
		n, tail, ok := unpackHold(value)
		if !strings.HasPrefix(field, "r:") || !ok {
			continue
		}
		id, sign := field[2:], ":"
		text := fmt.Sprintf("%d:%d:%d:%d:%d:%d:", n[0], n[1], n[2], n[3], n[4], n[6])
		if n[6] > 1 {
			sign, text = "+", text+fmt.Sprintf("%d:%s", n[5], tail)
			charges, extra = charges+int(n[6]&flagCharge/flagCharge), extra+n[5]-n[3]
		} else {
			text += strings.TrimPrefix(tail, "::")
		}
		must(t, c.HSet(t.Context(), state, field, text))
		was := packedNumber(n[0]) + sign + id
		z := redis.Z{Score: c.ZScore(t.Context(), holds, was).Val(), Member: fmt.Sprint(n[0], sign, id)}
		must(t, c.ZRem(t.Context(), holds, was))
		must(t, c.ZAdd(t.Context(), holds, z))
	}
	if size == 56 {
		must(t, c.Del(t.Context(), holds))
	} else if charges > 0 {
		must(t, c.HSet(t.Context(), state, "c", fmt.Sprint(charges, ":", extra)))
	}
}

// Whatever comes first to a bucket that an earlier version wrote is answered as if this one had,
// and leaves the same bucket behind.
func TestHoldsOfAnEarlierVersion(t *testing.T) {
	_, l := clocked(t)
	drawn := func(credential, id, reservation string, units int64) quota.Charge {
		c := one(credential, units)
		c.ID, c.Reservation = id, reservation
		return c
	}
	var c quota.Charge // the draw before, and its answer
	var d quota.Decision
	ctx, b := t.Context(), "default.b"
	for name, first := range map[string]func(k string) (any, error){
		"charge":  func(k string) (any, error) { return l.Charge(ctx, drawn(k, "first", "", 15)) },
		"denial":  func(k string) (any, error) { return l.Charge(ctx, one(k, 41)) },
		"draw":    func(k string) (any, error) { return l.Charge(ctx, drawn(k, "x", b, 3)) },
		"release": func(k string) (any, error) { return l.Release(ctx, k, "default.a") },
		"extend": func(k string) (any, error) {
			e := extendOf(b)
			e.Credential = k
			return l.Extend(ctx, e)
		},
		"cancel": func(string) (any, error) { return nil, l.Cancel(ctx, c, d) },
		"adjust": func(k string) (any, error) { return l.Adjust(ctx, adjustOf(k, 4)) },
		"usage":  func(k string) (any, error) { return l.Usage(ctx, k, hundred) },
		"repair": func(k string) (any, error) { return l.CheckBucket(ctx, k, "default", true) },
		"suspend": func(k string) (any, error) {
			return nil, l.Suspend(ctx, quota.Suspension{Credential: k, Bucket: "default", Until: start.Add(days(1))})
		},
		"reserve": func(k string) (any, error) {
			r := reserveOf("default.first", 7, time.Minute)
			r.Credential = k
			return l.Reserve(ctx, r)
		},
		"settle": func(k string) (any, error) {
			s := settleOf("default.a", 4)
			s.Credential, s.ID = k, "first"
			return l.Settle(ctx, s)
		},
	} {
		for _, size := range []int{56, 64} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				forgetAll(t, l)
				var left []string // what was answered, and what is in the store
				for _, k := range []string{"k", "twin"} {
					for i, id := range []string{"default.a", "default.b", "default.empty"} {
						r := reserveOf(id, []int64{20, 10, 30}[i], time.Hour)
						r.Credential = k
						if size == 64 && i == 1 {
							r.Lapse, r.Costs[0].Most, r.Labels = quota.LapseCharge, 17, quota.Labels{"job": "a"}
						}
						setAside(t, l, r)
					}
					allow(t, l, drawn(k, "all", "default.empty", 30))
					c = drawn(k, "drawn", b, 5)
					d = allow(t, l, c)
					if k == "k" {
						earlier(t, l.client, k, size)
					}
					answer, err := first(k)
					if _, err := l.Charge(t.Context(), drawn(k, "last", "", 1)); err != nil {
						t.Error(err)
					}
					forgetStarts(t, l.client, k) // they were found at other times
					store := strings.ReplaceAll(dump(t, l.client, k), "{"+k+"}", "{}")
					left = append(left, fmt.Sprint(answer, err, "\n", store))
					sound(t, l, k)
				}
				if left[0] != left[1] {
					t.Errorf("answered and left\n%s, this version's\n%s", left[0], left[1])
				}
			})
		}
	}
}

// Once a hold that was settled would have expired, the next charge looks for the one that expires
// first, so that those after it need not look.
func TestNextToExpire(t *testing.T) {
	s, l := clocked(t)
	next := func() time.Time {
		state, ok := parseState(l.client.HGet(t.Context(), stateOfK, stateField).Val())
		if !ok {
			t.Fatal("the state cannot be read")
		}
		return fromMicro(state.next)
	}
	for id, ttl := range map[string]time.Duration{"a": time.Minute, "b": time.Hour, "c": days(1)} {
		setAside(t, l, reserveOf("default."+id, 1, ttl))
	}
	c := one("k", 1)
	c.Reservation = "default.b" // it has nothing left, and expires all the same
	allow(t, l, c)
	if _, err := l.Settle(t.Context(), settleOf("default.a", 1)); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ at, next time.Duration }{
		{time.Minute - time.Microsecond, time.Minute}, {time.Minute, time.Hour}, {time.Hour, days(1)},
	} {
		s.SetNow(t, start.Add(step.at))
		allow(t, l, one("k", 1))
		if got := next(); got.Before(start.Add(step.next)) || got.After(start.Add(step.next+time.Second)) {
			t.Errorf("after %v none expires before %v, want %v", step.at, got, start.Add(step.next))
		}
	}
	if _, err := l.Release(t.Context(), "k", "default.c"); err != nil {
		t.Fatal(err)
	}
	lasts(t, l, holdsOfK) // the list is there without a reservation, and not for ever
}

// The answer that an earlier version kept of a settlement is given again.
func TestSettledByAnEarlierVersion(t *testing.T) {
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	at := start.UnixMicro()
	for units, entry := range map[int64]string{50: "c", 0: ""} {
		kept := fmt.Sprintf("%d\nc - - 1 %d %d %d 30", units, at, at, units)
		must(t, l.client.Set(t.Context(), committedKey("k", "default.r"), kept, time.Hour))
		d, err := l.Settle(t.Context(), settleOf("default.r", units))
		if err != nil || !d.Replayed || d.Entry != entry || d.Units["default"] != units ||
			d.Remaining["default"] != 30 || !d.At.Equal(start) {
			t.Errorf("%d units: %+v, %v", units, d, err)
		}
	}
}

// A settlement that comes when more entries have come than may be written again changes nothing.
func TestSettledTooLate(t *testing.T) {
	s, l := clocked(t)
	r := reserveOf("default.r", 5, time.Second)
	r.Lapse = quota.LapseCharge
	setAside(t, l, r)
	s.SetNow(t, start.Add(time.Hour))
	log := entriesOf(t, l, "k") // the hold has become an entry
	pipe := l.client.Pipeline()
	for i := range maxRewritten + 1 {
		at := float64(start.Add(2*time.Second).UnixMicro() + int64(i))
		pipe.ZAdd(t.Context(), logOfK, redis.Z{Score: at, Member: fmt.Sprintf("%d:1:x:", 6+i)})
	}
	if _, err := pipe.Exec(t.Context()); err != nil || len(log) != 1 {
		t.Fatal(log, err)
	}
	withState(0, float64(5+maxRewritten+1))(t, l.client)
	if _, err := l.Settle(t.Context(), settleOf("default.r", 4)); !errors.Is(err,
		quota.ErrSettledLate) {
		t.Errorf("got %v", err)
	}
	if d, err := l.Settle(t.Context(), settleOf("default.r", 5)); err != nil || d.Entry != "r" {
		t.Errorf("as it stands: %+v, %v", d, err)
	}
}

// A hold that became an entry, and is settled days later for more: what was left behind of it has
// expired by then, and is taken off once.
func TestSettledOnceAfterDays(t *testing.T) {
	for _, once := range []bool{false, true} {
		s, l := clocked(t)
		r := reserveOf("default.r", 5, time.Minute)
		r.Lapse = quota.LapseCharge
		setAside(t, l, r)
		s.SetNow(t, start.Add(2*time.Minute))
		allow(t, l, one("k", 1))
		s.SetNow(t, start.Add(quota.Retention+time.Hour))
		c := settleOf("default.r", 7)
		c.Once, c.Limits = once, nil
		if d, err := l.Settle(t.Context(), c); err != nil || d.Units["default"] != 7 {
			t.Errorf("once %t: %+v, %v", once, d, err)
		}
		allow(t, l, one("k", 1))
		sound(t, l, "k")
	}
}
