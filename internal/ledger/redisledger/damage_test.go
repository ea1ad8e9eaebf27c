package redisledger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// byHand is what somebody does to the bucket "default" of the credential "k".
type byHand func(t *testing.T, c redis.UniversalClient)

// breakage is damage, and what is said of it.
type breakage struct {
	name string
	do   byHand
	says string
}

var (
	logOfK, stateOfK = logKey("k", "default"), stateKey("k", "default")
	inf              = math.Inf(1)
)

// withState writes the state with one of its doubles changed.
func withState(field int, value float64) byHand {
	return func(t *testing.T, c redis.UniversalClient) {
		s := []byte(c.HGet(t.Context(), stateOfK, stateField).Val())
		binary.LittleEndian.PutUint64(s[8*field:], math.Float64bits(value))
		must(t, c.HSet(t.Context(), stateOfK, stateField, s))
	}
}

// heldWith sets a unit aside, and writes the state with one of its doubles changed.
func heldWith(field int, value float64) byHand {
	return func(t *testing.T, c redis.UniversalClient) {
		l := open(t, "redis://"+c.(*redis.Client).Options().Addr)
		setAside(t, l, reserveOf("default.held", 1, time.Hour))
		withState(field, value)(t, c)
	}
}

// stateText puts text in the place of the state.
func stateText(text string) byHand {
	return func(t *testing.T, c redis.UniversalClient) {
		must(t, c.HSet(t.Context(), stateOfK, stateField, text))
	}
}

// replaced puts another member in the place of the one with that rank.
func replaced(rank int64, with string) byHand {
	return func(t *testing.T, c redis.UniversalClient) {
		old := c.ZRangeWithScores(t.Context(), logOfK, rank, rank).Val()
		must(t, c.ZRem(t.Context(), logOfK, old[0].Member))
		must(t, c.ZAdd(t.Context(), logOfK, redis.Z{Score: old[0].Score, Member: with}))
	}
}

// score moves the entry with that rank to another time.
func score(rank int64, to float64) byHand {
	return func(t *testing.T, c redis.UniversalClient) {
		old := c.ZRange(t.Context(), logOfK, rank, rank).Val()
		must(t, c.ZAdd(t.Context(), logOfK, redis.Z{Score: to, Member: old[0]}))
	}
}

// andStateLost loses the state, too.
func andStateLost(first byHand) byHand {
	return func(t *testing.T, c redis.UniversalClient) {
		first(t, c)
		stateLost(t, c)
	}
}

func stateLost(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	must(t, c.HDel(t.Context(), stateOfK, stateField))
}

// andStartsForgotten has the next decision look in the log where windows start.
func andStartsForgotten(first byHand) byHand {
	return func(t *testing.T, c redis.UniversalClient) {
		first(t, c)
		forgetStarts(t, c, "k")
	}
}

func forgetStarts(t *testing.T, c redis.UniversalClient, credential string) {
	t.Helper()
	key := stateKey(credential, "default")
	text := c.HGet(t.Context(), key, stateField).Val()
	s, ok := parseState(text)
	if !ok {
		t.Fatalf("a state of %d bytes", len(text))
	}
	must(t, c.HSet(t.Context(), key, stateField, strings.TrimSuffix(text, s.starts)))
}

// withOthers adds what others used in a window, one of whose numbers is wrong.
func withOthers(nth int, wrong float64) byHand {
	return func(t *testing.T, c redis.UniversalClient) {
		var text []byte
		for i, v := range []float64{3.6e9, 0, 0, float64(time.Now().UnixMicro()), 5, 0} {
			if i == nth {
				v = wrong
			}
			text = binary.LittleEndian.AppendUint64(text, math.Float64bits(v))
		}
		must(t, c.HSet(t.Context(), stateOfK, othersField, text))
	}
}

func must(t testing.TB, cmd redis.Cmder) {
	t.Helper()
	if err := cmd.Err(); err != nil {
		t.Fatal(err)
	}
}

// breakages leave a bucket, charged nine times 10 units, of which nothing may be charged any more
// before it was mended.
var breakages = []breakage{
	{"newest entry deleted", func(t *testing.T, c redis.UniversalClient) {
		must(t, c.ZRemRangeByRank(t.Context(), logOfK, -1, -1))
	}, "the total is 80 in its newest entry, and 90 in its state"},
	{"log deleted", func(t *testing.T, c redis.UniversalClient) {
		must(t, c.Del(t.Context(), logOfK))
	}, "no entries"},
	{"entry added by hand", func(t *testing.T, c redis.UniversalClient) {
		mine := redis.Z{Score: float64(time.Now().UnixMicro()), Member: "95:5:mine:"}
		must(t, c.ZAdd(t.Context(), logOfK, mine))
	}, "the total is 95 in its newest entry, and 90 in its state"},
	{"state from yesterday", withState(0, 10), "is 90 in its newest entry, and 10 in its state"},
	{"total too high", withState(0, 1000), "1000 in its state"},
	{"total below zero", withState(0, -10), "state"},
	{"total with a fraction", withState(0, 89.5), "state"},
	{"total is no number", withState(0, math.NaN()), "state"},
	{"total without end", withState(0, inf), "state"},
	{"newest is no number", withState(1, math.NaN()), "state"},
	{"newest without end", withState(1, inf), "state"},
	{"suspension is no number", withState(2, math.NaN()), "state"},
	{"holds are no number", withState(3, math.NaN()), "state"},
	{"held is no number", withState(7, math.NaN()), "state"},
	{"what becomes entries is no number", heldWith(8, math.NaN()), "state"},
	{"what estimates leave out is below zero", heldWith(9, -1), "state"},
	{"the next to expire does so never", heldWith(10, inf), "state"},
	{"others at no time", withOthers(3, math.NaN()), "what others used"},
	{"others used less than nothing", withOthers(4, -1), "what others used"},
	{"others used without end", withOthers(4, inf), "what others used"},
	{"others in half a window", func(t *testing.T, c redis.UniversalClient) {
		must(t, c.HSet(t.Context(), stateOfK, othersField, "half"))
	}, "what others used"},
	{"held below zero", withState(7, -10), "state"},
	{"retention without end", withState(5, inf), "state"},
	{"state cut short", stateText("short"), "5 bytes"},
	{"state too long", stateText(strings.Repeat("x", 72)), "72 bytes"},
	{"state empty", stateText(""), "0 bytes"},
	{"newest entry is none", replaced(-1, "hello"), unreadable},
	{"oldest entry is none", andStartsForgotten(replaced(0, "hello")), unreadable},
	{"units with a fraction", andStartsForgotten(replaced(0, "10:9.5:a:")), unreadable},
	{"units below zero", andStartsForgotten(replaced(0, "10:-10:a:")), unreadable},
	{"more units than the total", andStartsForgotten(replaced(0, "10:11:a:")), unreadable},
	{"oldest total too high", andStartsForgotten(replaced(0, "5000:10:a:")),
		"do not rise by their units"},
	{"oldest total a little too high", andStartsForgotten(replaced(0, "60:10:a:")),
		"do not rise by their units"},
	{"oldest total beyond what is exact", andStartsForgotten(replaced(0, "9007199254740993:10:a:")),
		unreadable},
	{"newest total beyond what is exact", andStateLost(replaced(-1, "99999999999999999999:10:a:")),
		unreadable},
	{"newest at no time", andStateLost(score(-1, inf)), "the time of an entry"},
	{"newest at a fraction of a time",
		andStateLost(score(-1, float64(time.Now().UnixMicro())+1e9+0.5)), "the time of an entry"},
}

const unreadable = "an entry cannot be read"

// What somebody did by hand is an error, which names the bucket and what mends it. It denies, it
// changes nothing, and it holds up nobody else on the server. A check finds it, and a repair makes
// no room that the entries do not leave.
func TestDamageDenies(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	for _, b := range breakages {
		t.Run(b.name, func(t *testing.T) {
			l.client.FlushAll(t.Context())
			ninety(t, l)
			b.do(t, l.client)
			before := dump(t, l.client, "k")
			for name, err := range asked(t, l) {
				if !errors.Is(err, quota.ErrLedgerUnusable) ||
					!says(err, "bucket default of k", b.says, "quotactl ledger check --repair") {
					t.Errorf("%s: got %v", name, err)
				}
			}
			if after := dump(t, l.client, "k"); after != before {
				t.Errorf("changed:\n%s\nwas\n%s", after, before)
			}
			found, err := l.CheckBucket(t.Context(), "k", "default", true)
			if err != nil || len(found) == 0 {
				t.Fatalf("%+v, %v", found, err)
			}
			if slices.ContainsFunc(found, func(f quota.Finding) bool { return !f.Mends }) {
				return // it says so, and the bucket goes on denying
			}
			sound(t, l, "k")
			var sum int64
			for _, e := range entriesOf(t, l, "k") {
				sum += e.Units
			}
			u, err := l.Usage(t.Context(), "k", hundred)
			if err != nil || u.Buckets[0].Limits[0].Used != sum {
				t.Errorf("%+v, %v; the entries add up to %d", u, err, sum)
			}
		})
	}
}

// ninety charges nine times 10 of 100 units.
func ninety(t *testing.T, l *Ledger) {
	t.Helper()
	for range 9 {
		allow(t, l, one("k", 10))
	}
}

// asked is what each question that needs the bucket is answered with.
func asked(t *testing.T, l *Ledger) map[string]error {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), 10*time.Second)
	defer done()
	errs := make(map[string]error)
	for _, units := range []int64{1, 10, 95} {
		_, errs[fmt.Sprintf("charge of %d", units)] = l.Charge(ctx, one("k", units))
	}
	_, errs["usage"] = l.Usage(ctx, "k", hundred)
	_, errs["reserve"] = l.Reserve(ctx, reserveOf("default.r", 1, time.Hour))
	return errs
}

func says(err error, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(fmt.Sprint(err), w) {
			return false
		}
	}
	return true
}

// Damage that only some questions come upon is an error for these. It is never more room, and every
// search ends.
func TestDamageInTheMiddle(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	ctx := t.Context()
	limits := []quota.Limit{{Bucket: "default", Units: 1000, Window: quota.Sliding(24 * time.Hour)}}
	charge := func(units int64) (quota.Decision, error) {
		c := one("k", units)
		c.Limits = limits
		return l.Charge(ctx, c)
	}
	middle := func(change string) func() {
		return func() {
			for i, z := range l.client.ZRangeWithScores(ctx, logOfK, 100, 300).Val() {
				l.client.ZRem(ctx, logOfK, z.Member)
				member := fmt.Sprintf(change+"%[3]s", i, 400-i, "")
				l.client.ZAdd(ctx, logOfK, redis.Z{Score: z.Score, Member: member})
			}
		}
	}
	for name, do := range map[string]func(){
		"totals all the same": middle("200:1:i%[1]d:"),
		"totals fall":         middle("%[2]d:1:i%[1]d:"),
		"totals all too high": middle("999999:1:i%[1]d:"),
		"no entries":          middle("hello %[1]d"),
		"at no time": func() {
			member := l.client.ZRange(ctx, logOfK, 200, 200).Val()[0]
			l.client.ZAdd(ctx, logOfK, redis.Z{Score: inf, Member: member})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l.client.FlushAll(ctx)
			for range 500 {
				if d, err := charge(2); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
			}
			do()
			for units := int64(1); units < 1000; units += 9 {
				d, err := charge(units)
				if d.Allowed || err != nil && !errors.Is(err, quota.ErrLedgerUnusable) {
					t.Errorf("%d units: %+v, %v", units, d, err)
				}
			}
		})
	}
}
