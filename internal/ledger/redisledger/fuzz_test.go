package redisledger

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// replyOf makes a reply of bytes: after a letter n the eight of a number, after s those of a text
// up to the next line break, and anything else is nothing.
func replyOf(data []byte) (r reply) {
	for len(data) > 0 && len(r.list) < 64 {
		kind := data[0]
		data = data[1:]
		switch {
		case kind == 'n' && len(data) >= 8:
			r.list = append(r.list, int64(binary.LittleEndian.Uint64(data)))
			data = data[8:]
		case kind == 's':
			text, rest, _ := strings.Cut(string(data), "\n")
			r.list = append(r.list, text)
			data = []byte(rest)
		default:
			r.list = append(r.list, nil)
		}
	}
	return r
}

func numbersReply(n ...int64) (data []byte) {
	for _, v := range n {
		data = binary.LittleEndian.AppendUint64(append(data, 'n'), uint64(v))
	}
	return data
}

// FuzzReply: whatever a script replies, and whatever is kept as an answer, is read or is an error,
// and never a panic.
func FuzzReply(f *testing.F) {
	at := int64(1_800_000_000_000_000)
	for _, seed := range [][]byte{
		nil,
		numbersReply(allowed, at, at, 0, 0, 90),
		numbersReply(allowed, at, at, 0, -1, 90, at+1),
		numbersReply(denied, at, at, 1, at+5, 0, 7),
		numbersReply(denied, at, at, -1, quota.Never, 0, 7),
		numbersReply(observed, at, at, 99, 0, 1, 2, 3),
		numbersReply(stale, at), numbersReply(reused), numbersReply(unknown), numbersReply(42),
		numbersReply(short, 3), numbersReply(short), numbersReply(never, 1),
		numbersReply(never, 0), numbersReply(never, 99), numbersReply(never, -1<<63),
		append(numbersReply(replayed), "sabc - default,search_list 1 5 6 0 0 9 8 7\n"...),
		append(numbersReply(replayed), "sabc default+24h default 2 5 6 1 7 9\n"...),
		append(numbersReply(replayed), "sabc - other 1 5 6 0 0 9\n"...),
		append(numbersReply(replayed), "sabc - - 1 5 6 7 8\n"...),
		append(numbersReply(replayed), "sabc - default 1 5\n"...),
		append(numbersReply(replayed), 's'),
		[]byte("snothing"),
	} {
		f.Add(seed)
	}
	limits := []quota.Limit{
		hundred[0],
		{Bucket: "search_list", Units: 5, Window: quota.Sliding(time.Hour)},
	}
	costs := []quota.Cost{{Bucket: "default", Units: 1}, {Bucket: "search_list", Units: 1}}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, r := &Ledger{}, replyOf(data)
		one, both := costs[:1], []quota.Cost{costs[1], costs[0]}
		for _, q := range []request{
			{op: "charge", costs: one, limits: byBucket(one, limits)},
			{op: "charge", costs: both, limits: byBucket(costs, limits), observe: true},
			{op: "reserve", costs: one, limits: byBucket(one, limits)},
		} {
			q.id, q.key = "id", "key"
			d, err := l.decision(&q, r)
			if err == nil && d.Allowed != (d.Entry != "" || d.Reservation != "") {
				t.Errorf("%q: %+v", data, d)
			}
		}
		settling := request{costs: one, reservation: "default.r", key: "key"}
		if d, err := settling.settlement("id", r); err == nil && !d.Allowed {
			t.Errorf("%q: %+v", data, d)
		}
		if u, err := usageOf(costs, byBucket(costs, limits), r); err == nil && len(u.Buckets) != 2 {
			t.Errorf("%q: %+v", data, u)
		}
	})
}

// FuzzMember: a member of a log, and a field of a reservation, is read with sound numbers, or is an
// error.
func FuzzMember(f *testing.F) {
	for _, seed := range []string{
		"", ":", "::::", "10:10:id:", "1:1:6ag00hkqk7ex2k:3RY0", "0:0:a:", "10:10:id:=%zz",
		"1:1:6ag00hkqk7ex2k:3RY0:5t1vgxr0wb", "20:10:id:=region=BR&denied=default+24h:r%3A1",
		"-1:1:a:", "1.5:1:a:", "1:-1:a:", "9007199254740993:1:a:", "99999999999999999999:1:a:",
		"5:1800000000000000:0:5:1799999999999999:0:note: with colons", "5:1:0:5:1:1:",
		"x:1:0:5:1:1:", "5:6:a:", "1e3:1:a:", "+5:+5:a:",
	} {
		f.Add(seed, 1.8e15)
	}
	m := member{total: 10, units: 10, id: "6ag00hkqk7ex2k", packed: true}
	for _, m.mark = range []string{"", "3RY0"} {
		for _, m.run = range []string{"", "5t1vgxr0wb"} {
			f.Add(m.String(), 1.8e15)
		}
	}
	f.Add("10:10:id:", math.Inf(1))
	f.Add("10:10:id:", math.NaN())
	f.Add("10:10:id:", -1.0)
	f.Add("10:10:id:", 0.5)
	f.Fuzz(func(t *testing.T, text string, score float64) {
		m, err := parseMember(redis.Z{Member: text, Score: score})
		if err == nil {
			if m.units < 1 || m.units > m.total || m.total > quota.MaxTotal || m.at < 0 ||
				float64(m.at) != score {
				t.Errorf("%q at %v: %+v", text, score, m)
			}
			again, err := parseMember(redis.Z{Member: m.String(), Score: score})
			if err != nil || again != m {
				t.Errorf("%q: %+v, and written again %+v, %v", text, m, again, err)
			}
			if labels, err := m.labels(strings.TrimPrefix(m.mark, "=")); err == nil &&
				labels == nil {
				t.Errorf("%q: no labels and no error", text)
			}
		}
		r, err := parseHold("default", "r", text)
		if err == nil && (r.Left < 0 || r.Drawn < 0 || r.Units < 0) {
			t.Errorf("%q: %+v", text, r)
		}
	})
}

// An answer that somebody damaged is an error that says which key it is, and not another answer.
func TestDamagedAnswer(t *testing.T) {
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	charge := one("k", 1)
	charge.Key = "once"
	reserve := reserveOf("default.r", 1, time.Hour)
	reserve.Key = "twice"
	settle := settleOf("default.s", 1)
	ctx, once, twice := t.Context(), answerKey("k", "once"), answerKey("k", "twice")
	committed := committedKey("k", "default.s")
	calls := map[string]func() (quota.Decision, error){
		once:      func() (quota.Decision, error) { return l.Charge(ctx, charge) },
		twice:     func() (quota.Decision, error) { return l.Reserve(ctx, reserve) },
		committed: func() (quota.Decision, error) { return l.Settle(ctx, settle) },
	}
	setAside(t, l, reserveOf("default.s", 1, time.Hour))
	for key, call := range calls {
		if _, err := call(); err != nil {
			t.Fatal(key, err)
		}
		kept := l.client.Get(t.Context(), key).Val()
		asked, words, isText := strings.Cut(kept, "\n")
		damaged := []string{"", "garbage"}
		if isText {
			damaged = append(damaged, asked+"\n", asked+"\n"+words[:strings.LastIndex(words, " ")],
				asked+"\n"+strings.Replace(words, " 1 ", " one ", 1))
		} else { // no ID, less than all numbers, another status
			damaged = append(damaged, kept[:56], kept[:50], kept[:8],
				"\x00\x00\x00\x00\x00\x00\x00\x40"+kept[8:])
		}
		for _, text := range damaged {
			must(t, l.client.Set(t.Context(), key, text, time.Hour))
			if _, err := call(); !errors.Is(err, quota.ErrLedgerUnusable) || !says(err, key) {
				t.Errorf("%s is %q: %v", key, text, err)
			}
		}
		must(t, l.client.Set(t.Context(), key, kept, time.Hour))
		if _, err := call(); err != nil {
			t.Errorf("%s as it was: %v", key, err)
		}
	}
}
