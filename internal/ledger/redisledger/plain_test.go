package redisledger

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// What plain.lua decides, and what it leaves alone, is what charge.lua decides without it: on logs
// of even and skewed sizes, sound and damaged, beside anything that a state can hold.
func TestPlainChargesDecideAlike(t *testing.T) {
	t.Parallel()
	s, l := clocked(t)
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	windows := []quota.Window{
		quota.Sliding(24 * time.Hour), quota.Sliding(time.Minute), {Calendar: "day", Zone: zone},
		quota.Sliding(96 * time.Hour),
	}
	statuses := make(map[string]int)
	for i := range 400 {
		c := rand.New(rand.NewPCG(1, uint64(i)))
		now := start.Add(time.Duration(i) * 100 * time.Hour)
		s.SetNow(t, now)
		one := historyOf(c, now)
		damage := func(string) {}
		if c.IntN(2) == 0 {
			damage = damageOf(t, l, c, now)
		}
		var limits []quota.Limit
		used := int64(0)
		for _, z := range one {
			used += z.units
		}
		small := c.IntN(3) == 0 // what a group charges matters to itself
		for range c.IntN(4) {
			limit := day(max(1, c.Int64N(used+used/4+10)))
			if small {
				limit.Units = 10 + c.Int64N(60)
			}
			limit.Window = windows[c.IntN(4)]
			limits = append(limits, limit)
		}
		group := make([]request, 1+c.IntN(2)*c.IntN(9))
		alike := c.IntN(2) == 0 // most calls of it are told as the call before
		for i := range group {
			units := 1 + c.Int64N(1+int64(math.Exp(c.Float64()*math.Log(float64(used+1)))))
			if small {
				units = 1 + c.Int64N(20)
			}
			if alike && i > 0 && c.IntN(8) > 0 {
				group[i] = group[i-1]
				group[i].id = quota.NewID(now)
				continue
			}
			group[i] = request{op: "charge", id: quota.NewID(now),
				costs: []quota.Cost{{Bucket: "default", Units: units}}, limits: [][]quota.Limit{limits}}
			if c.IntN(4) == 0 {
				group[i].limits[0] = limits[:c.IntN(len(limits)+1)]
			}
			if c.IntN(2) == 0 {
				group[i].label.code = "aBc-"
			}
			if c.IntN(2) == 0 {
				group[i].label.run = quota.NewRunID(now)
			}
			if c.IntN(10) == 0 { // written out
				group[i].costs[0].Units += math.MaxUint32
			}
		}
		holds := holdsOf(c)
		// More arguments than plain charges have are what keeps plain.lua out of it.
		ask := func(credential string, more ...any) string {
			s.SetNow(t, now.Add(-time.Second))
			pipe := l.client.Pipeline()
			for n, e := range one {
				pipe.ZAdd(t.Context(), logKey(credential, "default"),
					redis.Z{Score: float64(e.at), Member: e.member(n, n%7 < i%8)})
			}
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := request{op: "charge", credential: credential, id: "first",
				costs: []quota.Cost{{Bucket: "default", Units: 1}}, limits: [][]quota.Limit{nil}}
			if _, err := l.askTogether(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			for _, h := range holds {
				h.Credential = credential
				if _, err := l.askTogether(t.Context(), reserving(h)); err != nil {
					t.Fatal(err)
				}
				if h.Costs[0].Units%2 == 0 { // all of it is drawn
					draw := r
					draw.reservation, draw.costs = h.ID, h.Costs
					if _, err := l.askTogether(t.Context(), draw); err != nil {
						t.Fatal(err)
					}
				}
			}
			damage(credential)
			s.SetNow(t, now)
			var operations []*operation
			for _, r := range group {
				operations = append(operations, asking(r, now))
			}
			args := argsOfGroup(operations)[:1]
			for _, o := range operations {
				args = append(append(args, strings.Join(o.Work.texts, "")), more...)
			}
			all, err := replies(l.run(t.Context(), "charge", r.keys(), args...))
			var list [][]int64
			for i := 0; i < len(group) && err == nil; i++ {
				one, _ := all.toCall(i, len(group))
				ints, _ := one.ints(1)
				list = append(list, ints)
			}
			text, _, _ := strings.Cut(fmt.Sprint(list, err), " script: ")
			return strings.ReplaceAll(text+"\n"+dump(t, l.client, credential), credential, "NAME")
		}
		plain := ask(fmt.Sprintf("plain%dx", i))
		if full := ask(fmt.Sprintf("full%dx", i), "", "", "", ""); plain != full {
			t.Fatalf("case %d: %+v under %v:\n%s\nand without plain.lua\n%s", i, group, limits,
				plain, full)
		}
		statuses[plain[:3]]++
	}
	for _, status := range []string{"[[1", "[[0", "[]E"} {
		if statuses[status] < 20 {
			t.Errorf("few cases of some kind: %v", statuses)
		}
	}
}

// holdsOf are up to four reservations, made a second before they matter. Some expire before that,
// some while a group is decided.
func holdsOf(c *rand.Rand) []quota.Reserve {
	list := make([]quota.Reserve, c.IntN(2)*c.IntN(5))
	for i := range list {
		units := 1 + c.Int64N(200)
		list[i] = quota.Reserve{
			ID:    quota.ReservationID(fmt.Sprintf("r%d", i), "default"),
			TTL:   time.Duration(2+c.IntN(3600)) * time.Second,
			Costs: []quota.Cost{{Bucket: "default", Units: units}},
		}
		switch c.IntN(10) {
		case 0, 1:
			list[i].TTL = time.Millisecond
		case 2:
			list[i].TTL = time.Second + time.Duration(c.IntN(12)-4)*time.Microsecond
		}
		if c.IntN(2) == 0 {
			list[i].Lapse, list[i].Costs[0].Most = quota.LapseCharge, units+c.Int64N(20)
		}
	}
	return list
}

type logged struct{ at, total, units int64 }

// member is the nth of a history.
func (e logged) member(n int, packed bool) string {
	id := fmt.Sprintf("%014d", n)
	return member{total: e.total, units: e.units, id: id, mark: "abcd", packed: packed}.String()
}

// historyOf makes up to 300 entries of the last 30 hours, with sizes of one kind or of two.
func historyOf(c *rand.Rand, now time.Time) []logged {
	list := make([]logged, c.IntN(300))
	most, then, change := 1+c.Int64N(100), 1+c.Int64N(2000), c.IntN(len(list)+1)
	windows := []int64{24 * 3600 * 1e6, 60 * 1e6}
	for i := range list {
		list[i].at = now.UnixMicro() - 2e6 - c.Int64N(30*3600*1e6)
		if c.IntN(20) == 0 { // it leaves a window while a group is decided
			list[i].at = now.UnixMicro() - windows[c.IntN(2)] + c.Int64N(9)
		}
	}
	slices.SortFunc(list, func(a, b logged) int { return int(a.at - b.at) })
	total := int64(0)
	for i := range list {
		if i == change {
			most = then
		}
		list[i].units = 1 + c.Int64N(most)
		total += list[i].units
		list[i].total = total
	}
	return list
}

// damageOf changes a number of the state, or an entry.
func damageOf(t *testing.T, l *Ledger, c *rand.Rand, now time.Time) func(credential string) {
	nth, rank, kind := c.IntN(11), c.Int64N(100), c.IntN(4)
	values := []float64{
		0, -1, 1, 0.5, math.NaN(), math.Inf(1), math.Inf(-1), 1e300,
		float64(now.UnixMicro()) + 1e9, float64(now.UnixMicro()) - 1e9, 1 << 53,
	}
	value := values[c.IntN(len(values))]
	texts := []string{"x", "1:2:a:", "7:7:a:", "-1:1:a:", "1e3:1:a:", "99999999999999999:1:a:"}
	for _, m := range []member{
		{total: 7, units: 7}, {total: 7}, {total: 7, units: 8},
		{total: quota.MaxTotal + 1, units: 1},
	} {
		m.id, m.packed = fmt.Sprintf("%014d", 1), true
		texts = append(texts, m.String(), m.String()+"abcd", m.String()[:20], m.String()+"a")
	}
	text := texts[c.IntN(len(texts))]
	return func(credential string) {
		ctx, state, log := t.Context(), stateKey(credential, "default"), logKey(credential, "default")
		switch kind {
		case 0, 3:
			text := l.client.HGet(ctx, state, stateField).Val()
			if len(text) < 64 {
				return // it was deleted
			}
			number := numbers{0}.blob()
			for i := range number {
				number[i] = byte(math.Float64bits(value) >> (8 * i))
			}
			at := 8 * (nth % (len(text) / 8))
			l.client.HSet(ctx, state, stateField, text[:at]+string(number)+text[at+8:])
		case 1:
			if rank%4 == 0 {
				rank = -1
			}
			for _, z := range l.client.ZRangeWithScores(ctx, log, rank, rank).Val() {
				l.client.ZRem(ctx, log, z.Member)
				l.client.ZAdd(ctx, log, redis.Z{Score: z.Score, Member: text})
			}
		case 2:
			l.client.ZRemRangeByRank(ctx, log, rank, rank+int64(nth))
		}
	}
}
