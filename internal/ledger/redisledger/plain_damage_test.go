package redisledger

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// damage changes a number of the state, an entry, a reservation, or how these are listed.
func (p *twice) damage() {
	c := p.c
	kind, seed := c.IntN(9), c.Uint64()
	number := damageOf(p.T, p.l, rand.New(rand.NewPCG(3, seed)), p.now)
	nth := c.IntN(8)
	texts := []string{
		"x", "5:1795000000000000:0:5:1:6:5:::", packedHold(5, 1<<50, 0, 5, 1, 5, 8) + "::",
		packedHold(5, 1<<50, 0, 5, 1, 4, 6) + "::", packedHold(5, 1<<50, 0, 5, 1, 5, 6),
		packedHold(int64(nth), 1795e12, 0, 5, 1, 1795e12, 6) + "::",
	}
	text := texts[c.IntN(len(texts))]
	for _, credential := range p.names {
		ctx, index := p.Context(), holdsKey(credential, "default")
		state := stateKey(credential, "default")
		if s, _ := parseState(p.l.client.HGet(ctx, state, stateField).Val()); s.holds == 0 {
			nth -= nth % 3 // a list that is lost while it is empty comes back without an expiry
		}
		switch kind {
		case 0, 1, 2:
			number(credential)
		case 3:
			for _, r := range p.made {
				p.damageHold(state, "r:"+holdID(r.ID), text, nth)
			}
		case 4:
			p.l.client.ZRemRangeByRank(ctx, index, 1, int64(nth))
		case 5:
			score := float64(p.now.UnixMicro()) + 1e6*float64(nth-4)
			p.l.client.ZAdd(ctx, index, redis.Z{Score: score, Member: packedNumber(7) + "+other"})
		case 6:
			p.damageWindow(logKey(credential, "default"), nth)
		case 7:
			p.l.client.Del(ctx, bucketKeys(credential, "default")[nth%3])
		case 8: // suspended for a while, or until now
			until := p.now.Add(time.Duration(nth) * time.Second)
			_ = p.l.Suspend(ctx, quota.Suspension{Credential: credential, Bucket: "default", Until: until}) // or it is damaged
		}
	}
}

// damageWindow changes the total of one of the two entries with which the last 24 hours begin.
func (p *twice) damageWindow(log string, nth int) {
	ctx := p.Context()
	from := fmt.Sprint(p.now.Add(-24*time.Hour).UnixMicro() + 1)
	within := &redis.ZRangeBy{Min: from, Max: "+inf"}
	first := p.l.client.ZRangeByScoreWithScores(ctx, log, within).Val()
	if len(first) < 3 {
		return
	}
	z := first[nth%2]
	m, _ := parseMember(z)
	p.l.client.ZRem(ctx, log, z.Member)
	m.total += int64(nth - 4)
	z.Member = m.String()
	p.l.client.ZAdd(ctx, log, z)
}

// damageHold changes one of the first numbers of a reservation that there is, or all of it.
func (p *twice) damageHold(state, field, text string, nth int) {
	ctx := p.Context()
	was := p.l.client.HGet(ctx, state, field).Val()
	if was == "" {
		return
	}
	if nth < 6 && len(was) > 42 {
		text = was[:7*nth] + packedNumber(1<<53+1) + was[7*nth+7:]
	}
	p.l.client.HSet(ctx, state, field, text)
}

func packedNumber(n int64) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(n))[1:])
}

// packedHold is six numbers and the flags of a reservation (holds.lua).
func packedHold(numbers ...int64) (text string) {
	for _, n := range numbers[:6] {
		text += packedNumber(n)
	}
	return text + string([]byte{byte(numbers[6])})
}

// A hold that is not listed in one of its buckets is settled and released in none.
func TestUnlistedHoldIsNotEnded(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	limits := []quota.Limit{day(100), day(100)}
	limits[1].Bucket = "other"
	for _, bucket := range []string{"default", "other"} {
		l.client.FlushAll(t.Context())
		r := reserveOf("default+other.r", 5, time.Hour)
		r.Lapse, r.Costs = quota.LapseCharge, append(r.Costs, quota.Cost{Bucket: "other", Units: 2})
		c := one("k", 1)
		c.Limits, r.Limits = limits, limits
		c.Costs = append(c.Costs, quota.Cost{Bucket: "other", Units: 1})
		allow(t, l, c)
		setAside(t, l, r)
		must(t, l.client.Del(t.Context(), holdsKey("k", bucket)))
		before := dump(t, l.client, "k")
		_, err := l.Settle(t.Context(), quota.Settle{
			Credential: "k", Reservation: r.ID, ID: "s", Costs: r.Costs, Limits: limits})
		words := []string{"bucket " + bucket + " of k", "r is not listed"}
		if !says(err, words...) || dump(t, l.client, "k") != before {
			t.Errorf("settled, unlisted in %s: %v", bucket, err)
		}
		_, err = l.Release(t.Context(), "k", r.ID)
		if !says(err, words...) || dump(t, l.client, "k") != before {
			t.Errorf("released, unlisted in %s: %v", bucket, err)
		}
	}
}

// One hold of one bucket, and its settlement, are decided by lines of their own: they find what is
// damaged, too, and leave it as it is.
func TestDamageBesideOneHold(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	for name, test := range map[string]struct {
		damage func(credential string)
		says   string
	}{
		"first total too low":  {func(k string) { damageFirst(t, l, k, -2) }, "cannot be read"},
		"first total too high": {func(k string) { damageFirst(t, l, k, 3) }, "do not rise"},
		"not listed": {func(k string) {
			must(t, l.client.ZRemRangeByScore(t.Context(), holdsKey(k, "default"), "0", "+inf"))
		}, "h1 is not listed"},
	} {
		t.Run(name, func(t *testing.T) {
			k := strings.ReplaceAll(name, " ", "-")
			hold := func(id string) error {
				r := reserveOf("default."+id, 5, time.Hour)
				r.Credential, r.Lapse, r.Limits = k, quota.LapseCharge, []quota.Limit{day(100)}
				_, err := l.Reserve(t.Context(), r)
				return err
			}
			settle := func() error {
				_, err := l.Settle(t.Context(), quota.Settle{Credential: k,
					Reservation: "default.h1", ID: quota.NewID(time.Now()),
					Costs: []quota.Cost{{Bucket: "default", Units: 3}}})
				return err
			}
			for range 3 {
				allow(t, l, one(k, 5))
			}
			if err := hold("h1"); err != nil {
				t.Fatal(err)
			}
			test.damage(k)
			before := dump(t, l.client, k)
			ask := func() error { return hold("h2") }
			if test.says == "h1 is not listed" {
				ask = settle
			}
			if err := ask(); !says(err, test.says) || dump(t, l.client, k) != before {
				t.Errorf("got %v", err)
			}
		})
	}
}

// damageFirst adds to the total of a log's first entry.
func damageFirst(t *testing.T, l *Ledger, credential string, units int64) {
	log := logKey(credential, "default")
	z := l.client.ZRangeWithScores(t.Context(), log, 0, 0).Val()[0]
	must(t, l.client.ZRem(t.Context(), log, z.Member))
	m, _ := parseMember(z)
	m.total += units
	z.Member = m.String()
	must(t, l.client.ZAdd(t.Context(), log, z))
	forgetStarts(t, l.client, credential)
}
