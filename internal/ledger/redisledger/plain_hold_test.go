package redisledger

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// What plain_hold.lua and plain_settle.lua decide, and what they leave alone, is what charge.lua
// and settle.lua decide without them: through random histories of holds and settlements, with holds
// that expire, a clock that is set back, and damage to any key.
func TestPlainHoldsDecideAlike(t *testing.T) {
	t.Parallel()
	s, l := clocked(t)
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	plain, results := make(map[string]int), make(map[string]int)
	for i := range 240 {
		c := rand.New(rand.NewPCG(2, uint64(i)))
		p := &twice{T: t, s: s, l: l, c: c, now: start.Add(time.Duration(i) * 100 * time.Hour),
			plain: plain, results: results}
		p.names = [2]string{fmt.Sprintf("plain%dx", i), fmt.Sprintf("full%dx", i)}
		p.windows = []quota.Window{
			quota.Sliding(24 * time.Hour), quota.Sliding(time.Minute),
			{Calendar: "day", Zone: zone}, quota.Sliding(96 * time.Hour), {Concurrent: true},
		}
		if err := l.client.FlushDB(t.Context()).Err(); err != nil { // few keys are found sooner
			t.Fatal(err)
		}
		p.begin(historyOf(c, p.now))
		for range 16 {
			p.step()
		}
	}
	for _, of := range []string{"hold", "settle"} {
		if plain[of+" alone"] < 40 || plain[of+" in 2"] < 40 || plain[of+" together"] < 20 ||
			plain[of+" in a crowd"] < 5 || results[of+" [1"] < 200 || results[of+" damaged"] < 50 {
			t.Errorf("few cases of some kind: %v, %v", plain, results)
		}
	}
}

// twice takes the same steps on two credentials, the second without the plain scripts.
type twice struct {
	*testing.T
	s       *redistest.Server
	l       *Ledger
	c       *rand.Rand
	now     time.Time
	names   [2]string
	windows []quota.Window
	used    int64
	made    []quota.Reserve
	crowd   bool // a large group was made, and not settled

	plain, results map[string]int // by script
}

// begin logs a history, and the charge that makes a state of it.
func (p *twice) begin(entries []logged) {
	p.s.SetNow(p.T, p.now.Add(-time.Second))
	for _, credential := range p.names {
		pipe := p.l.client.Pipeline()
		for n, e := range entries {
			z := redis.Z{Score: float64(e.at), Member: e.member(n, n%7 < len(entries)%8)}
			pipe.ZAdd(p.Context(), logKey(credential, "default"), z)
			pipe.ZAdd(p.Context(), logKey(credential, "other"), z)
			p.used = e.total
		}
		if _, err := pipe.Exec(p.Context()); err != nil {
			p.Fatal(err)
		}
		r := request{op: "charge", credential: credential, id: "first",
			costs:  []quota.Cost{{Bucket: "default", Units: 1}, {Bucket: "other", Units: 1}},
			limits: [][]quota.Limit{nil, nil}}
		if _, err := p.l.askTogether(p.Context(), r); err != nil {
			p.Fatal(err)
		}
	}
}

func (p *twice) step() {
	c := p.c
	switch c.IntN(16) {
	case 0:
		p.now = p.now.Add(-time.Duration(c.IntN(3)) * time.Second)
	case 1:
		p.now = p.now.Add(time.Duration(c.Int64N(int64(2 * time.Hour))))
	case 3: // the keys are soon to be kept for longer
		p.now = p.now.Add(75 * time.Hour)
	case 2: // midnight in the zone of the calendar limit
		y, m, d := p.now.In(p.windows[2].Zone).Date()
		p.now = time.Date(y, m, d+1, 0, 0, 0, 0, p.windows[2].Zone)
	default:
		p.now = p.now.Add(time.Duration(c.IntN(2)*c.IntN(3_000_000)) * time.Microsecond)
	}
	p.s.SetNow(p.T, p.now)
	switch k := c.IntN(12); {
	case k == 0:
		p.damage()
	case k < 8 || len(p.made) == 0:
		p.hold()
	default:
		p.settle()
	}
}

func (p *twice) limits() (limits []quota.Limit) {
	for range p.c.IntN(4) {
		limit := day(max(1, p.used+p.c.Int64N(p.used+1000)-p.used/4))
		limit.Bucket = []string{"default", "other"}[p.c.IntN(2)]
		limit.Window = p.windows[p.c.IntN(len(p.windows)-1+p.c.IntN(8)/7)]
		if limit.Window.Length == time.Minute {
			limit.Units = 50 + p.c.Int64N(400)
		}
		limits = append(limits, limit)
	}
	return limits
}

// hold makes some reservations of the same buckets, in one group.
func (p *twice) hold() {
	c := p.c
	names := [][]string{{"default"}, {"other", "default"}}[c.IntN(2)]
	var all []quota.Reserve
	limits := p.limits()
	size, odd := 1+c.IntN(2)*c.IntN(4), 1
	if c.IntN(20) == 0 {
		size, odd, p.crowd = 1+c.IntN(maxGroup), 50, true
	}
	alike := c.IntN(2) == 0 // most of them are told as the one before
	for i := range size {
		r := p.reserve(names, limits, odd)
		if alike && i > 0 && c.IntN(4) > 0 {
			id := r.ID
			r = all[i-1]
			r.ID = id
		}
		all = append(all, r)
		if c.IntN(3*size) == 0 {
			limits = p.limits()
		}
	}
	p.made = append(p.made, all...)
	asked := p.asked()
	p.both("hold", len(names), func(credential string, more ...any) []*redis.Cmd {
		var group []*operation
		for _, r := range all {
			r.Credential = credential
			q := reserving(r)
			q.label = known(q.label)
			o := asking(q, asked)
			for range more {
				o.Work.texts = append(o.Work.texts, "")
			}
			group = append(group, o)
		}
		keys := group[0].Work.request.keys()
		return []*redis.Cmd{p.l.run(p.Context(), "hold", keys, argsOfGroup(group)...)}
	})
}

// reserve is a reservation that is plain the more often the higher odd is.
func (p *twice) reserve(names []string, limits []quota.Limit, odd int) quota.Reserve {
	c := p.c
	units := 1 + c.Int64N(100)
	r := quota.Reserve{
		ID:  quota.ReservationID(fmt.Sprintf("h%d", c.IntN(40*odd*odd)), names...),
		TTL: time.Duration(1 + c.Int64N(int64(3*time.Hour))), Limits: limits,
		Labels: quota.Labels{"job": "a"}, Manual: c.IntN(20) == 0,
	}
	for _, name := range names {
		r.Costs = append(r.Costs, quota.Cost{
			Bucket: name, Units: units, Most: c.Int64N(2) * (units + c.Int64N(99))})
		units = 1 + c.Int64N(30)
	}
	if c.IntN(8*odd) == 0 {
		r.TTL = 80 * time.Hour
	}
	if c.IntN(5*odd) > 0 {
		r.Lapse = quota.LapseCharge
	}
	if c.IntN(2) == 0 {
		r.Labels["run"] = []string{"a:b", quota.NewRunID(p.now)}[c.IntN(2)]
	}
	if c.IntN(20*odd) == 0 {
		r.Note = "why"
	}
	return r
}

// asked is when the caller asks by its own clock, which may be a moment or a day behind.
func (p *twice) asked() time.Time {
	switch p.c.IntN(9) {
	case 0, 1:
		return p.now.Add(-time.Microsecond)
	case 2:
		return p.now.Add(-24 * time.Hour)
	}
	return p.now
}

// known is a label whose line the server was told.
func known(of label) label { return label{code: codeOf(of.line), run: of.run} }

// settle ends some of the last reservations of the same buckets, in one group. Most are not asked
// for again.
func (p *twice) settle() {
	c := p.c
	of := p.made[len(p.made)-1]
	var all []quota.Settle
	most, odd := 4, 1
	if p.crowd {
		most, odd, p.crowd = maxGroup, 50, false
	}
	for i := len(p.made) - 1; i >= max(0, len(p.made)-2*most) && len(all) < most; i-- {
		r := p.made[i]
		if len(r.Costs) != len(of.Costs) || c.IntN(3) == 0 || odd > 1 && !p.isHeld(r) {
			continue
		}
		s := quota.Settle{
			Reservation: r.ID, ID: fmt.Sprintf("s%d", c.IntN(1000)), Labels: r.Labels,
			Within: c.IntN(20*odd) == 0, Once: c.IntN(2) == 0,
		}
		if c.IntN(2) == 0 { // its entry is packed
			s.ID = quota.NewID(p.now)
		}
		for _, cost := range r.Costs {
			units := 1 + c.Int64N(150) - c.Int64N(int64(9*odd))/int64(9*odd-1)
			if c.IntN(40*odd) == 0 {
				units += math.MaxUint32
			}
			s.Costs = append(s.Costs, quota.Cost{Bucket: cost.Bucket, Units: units})
		}
		if c.IntN(20*odd) == 0 {
			s.Costs = nil
		}
		if all = append(all, s); c.IntN(20*odd) == 0 {
			all = append(all, s)
		}
		if c.IntN(4) > 0 && len(p.made) > 1 {
			p.made = slices.Delete(p.made, i, i+1)
		}
		if c.IntN(5*odd) == 0 {
			break
		}
	}
	if len(all) == 0 {
		return
	}
	if len(all) == 1 && c.IntN(3) == 0 {
		all[0].Limits = p.limits()
	}
	asked := p.asked()
	p.both("settle", len(of.Costs), func(credential string, more ...any) []*redis.Cmd {
		var group []*operation
		for _, s := range all {
			s.Credential = credential
			q := settling(s)
			q.label = known(labelOf(s.Labels))
			group = append(group, asking(q, asked))
		}
		run := func(group []*operation) *redis.Cmd {
			args := append(argsOfGroup(group), more...)
			return p.l.run(p.Context(), "settle", settleKeys(group), args...)
		}
		if len(more) == 0 && len(group) > 1 {
			cmd := run(group)
			if list, ok := cmd.Val().([]any); !ok || len(list) > 0 {
				return []*redis.Cmd{cmd}
			}
		}
		var cmds []*redis.Cmd
		for i := range group {
			cmds = append(cmds, run(group[i:i+1]))
		}
		return cmds
	})
}

func (p *twice) isHeld(r quota.Reserve) bool {
	state := stateKey(p.names[0], r.Costs[0].Bucket)
	return p.l.client.HExists(p.Context(), state, "r:"+holdID(r.ID)).Val()
}

// both runs a script for both credentials, and compares the replies and all keys. One more argument
// than plain calls have is what keeps the plain script out.
func (p *twice) both(name string, buckets int,
	run func(credential string, more ...any) []*redis.Cmd) {
	var texts [2]string
	for i, credential := range p.names {
		for _, cmd := range run(credential, []any{""}[:i]...) {
			texts[i] += p.answers(name, buckets, i == 0, cmd)
		}
		texts[i] += dump(p.T, p.l.client, credential)
		texts[i] = strings.ReplaceAll(texts[i], credential, "NAME")
	}
	if texts[0] != texts[1] {
		p.Fatalf("%s of %s at %v:\n%s\nand without the plain script\n%s", name, p.names[0], p.now,
			texts[0], texts[1])
	}
}

// answers are the replies to the calls of a group, a line each, and counts them.
func (p *twice) answers(name string, buckets int, first bool, cmd *redis.Cmd) (lines string) {
	answered, err := replies(cmd)
	calls := 1
	if name == "hold" && err == nil {
		calls = max(1, len(answered.list))
	}
	if _, plain := cmd.Val().(string); plain {
		calls = answered.len() / p.numbers(name, buckets)
		p.plain[fmt.Sprint(name, " in ", buckets)]++
		switch {
		case calls > 1:
			p.plain[name+" together"]++
		case buckets == 1:
			p.plain[name+" alone"]++
		}
		if calls > 8 {
			p.plain[name+" in a crowd"]++
		}
		if !first {
			p.Fatalf("%s: it was decided by the plain script", name)
		}
	}
	for c := range calls {
		own, err := answered, err
		if err == nil && (name == "hold" || calls > 1) {
			own, err = answered.toCall(c, calls)
		}
		ints, _ := own.ints(1)
		text, _, _ := strings.Cut(fmt.Sprint(ints, own.text(), err), " script: ")
		if first {
			status, _, _ := strings.Cut(text, " ")
			p.results[name+" "+strings.TrimSuffix(status, "]")]++
			if strings.Contains(text, "QUOTADAMAGED") {
				p.results[name+" damaged"]++
			}
		}
		lines += text + "\n"
	}
	return lines
}

// numbers is how many a plain script replies to each call.
func (p *twice) numbers(name string, buckets int) int {
	if name == "hold" {
		return 6 + buckets
	}
	return 5 + 2*buckets
}

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
			_ = p.l.Suspend(ctx, credential, "default", until) // or it is damaged
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

func packedNumber(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))[1:]) }

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
				_, err := l.Settle(t.Context(), quota.Settle{Credential: k, Reservation: "default.h1",
					ID: quota.NewID(time.Now()), Costs: []quota.Cost{{Bucket: "default", Units: 3}}})
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
