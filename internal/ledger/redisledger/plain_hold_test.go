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
