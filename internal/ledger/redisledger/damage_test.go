package redisledger

import (
	"context"
	"encoding/binary"
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

// breakage is what somebody does to the bucket "default" of the credential "k", by hand.
type breakage struct {
	name string
	do   func(t *testing.T, c redis.UniversalClient)
	says string
}

var (
	logOfK, stateOfK = logKey("k", "default"), stateKey("k", "default")
	inf              = math.Inf(1)
)

// withState writes the state with one of its doubles changed.
func withState(field int, value float64) func(*testing.T, redis.UniversalClient) {
	return func(t *testing.T, c redis.UniversalClient) {
		t.Helper()
		s := []byte(c.HGet(t.Context(), stateOfK, stateField).Val())
		binary.LittleEndian.PutUint64(s[8*field:], math.Float64bits(value))
		must(t, c.HSet(t.Context(), stateOfK, stateField, s))
	}
}

// stateText puts text in the place of the state.
func stateText(text string) func(*testing.T, redis.UniversalClient) {
	return func(t *testing.T, c redis.UniversalClient) {
		t.Helper()
		must(t, c.HSet(t.Context(), stateOfK, stateField, text))
	}
}

// replaced puts another member in the place of the one with that rank.
func replaced(rank int64, with string) func(*testing.T, redis.UniversalClient) {
	return func(t *testing.T, c redis.UniversalClient) {
		t.Helper()
		old := c.ZRangeWithScores(t.Context(), logOfK, rank, rank).Val()
		must(t, c.ZRem(t.Context(), logOfK, old[0].Member))
		must(t, c.ZAdd(t.Context(), logOfK, redis.Z{Score: old[0].Score, Member: with}))
	}
}

// score moves the entry with that rank to another time.
func score(rank int64, to float64) func(*testing.T, redis.UniversalClient) {
	return func(t *testing.T, c redis.UniversalClient) {
		t.Helper()
		old := c.ZRange(t.Context(), logOfK, rank, rank).Val()
		must(t, c.ZAdd(t.Context(), logOfK, redis.Z{Score: to, Member: old[0]}))
	}
}

// all does one thing after the other.
func all(steps ...func(*testing.T, redis.UniversalClient)) func(*testing.T, redis.UniversalClient) {
	return func(t *testing.T, c redis.UniversalClient) {
		for _, do := range steps {
			do(t, c)
		}
	}
}

func stateLost(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	must(t, c.HDel(t.Context(), stateOfK, stateField))
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
	{
		"log deleted",
		func(t *testing.T, c redis.UniversalClient) { must(t, c.Del(t.Context(), logOfK)) },
		"no entries",
	},
	{"entry added by hand", func(t *testing.T, c redis.UniversalClient) {
		must(
			t,
			c.ZAdd(
				t.Context(),
				logOfK,
				redis.Z{Score: float64(time.Now().UnixMicro()), Member: "95:5:mine:"},
			),
		)
	}, "the total is 95 in its newest entry, and 90 in its state"},
	{"state from yesterday", withState(0, 10), "the total is 90 in its newest entry, and 10 in its state"},
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
	{"held below zero", withState(7, -10), "state"},
	{"retention without end", withState(5, inf), "state"},
	{"state cut short", stateText("short"), "5 bytes"},
	{"state too long", stateText(strings.Repeat("x", 72)), "72 bytes"},
	{"state empty", stateText(""), "0 bytes"},
	{"newest entry is none", replaced(-1, "hello"), "an entry cannot be read"},
	{"oldest entry is none", replaced(0, "hello"), "an entry cannot be read"},
	{"units with a fraction", replaced(0, "10:9.5:a:"), "an entry cannot be read"},
	{"units below zero", replaced(0, "10:-10:a:"), "an entry cannot be read"},
	{"more units than the total", replaced(0, "10:11:a:"), "an entry cannot be read"},
	{"oldest total too high", replaced(0, "5000:10:a:"), "do not rise by their units"},
	{"oldest total a little too high", replaced(0, "60:10:a:"), "do not rise by their units"},
	{
		"oldest total beyond what is exact",
		replaced(0, "9007199254740993:10:a:"),
		"an entry cannot be read",
	},
	{
		"newest total beyond what is exact",
		all(replaced(-1, "99999999999999999999:10:a:"), stateLost),
		"an entry cannot be read",
	},
	{"newest at no time", all(score(-1, inf), stateLost), "the time of an entry"},
	{
		"newest at a fraction of a time",
		all(score(-1, float64(time.Now().UnixMicro())+1e9+0.5), stateLost),
		"the time of an entry",
	},
}

// What somebody did by hand is an error, which names the bucket and what mends it. It denies, it
// changes nothing, and it holds up nobody else on the server.
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
		})
	}
}

// ninety charges nine times 10 of 100 units.
func ninety(t *testing.T, l *Ledger) {
	t.Helper()
	for range 9 {
		if d, err := l.Charge(t.Context(), one("k", 10)); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
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
	_, errs["reserve"] = l.Reserve(
		ctx,
		quota.Reserve{Credential: "k", ID: "default.r", Units: 1, TTL: time.Hour, Limits: hundred},
	)
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
	middle := func(change func(i int, member string) string) func() {
		return func() {
			for i, z := range l.client.ZRangeWithScores(ctx, logOfK, 100, 300).Val() {
				l.client.ZRem(ctx, logOfK, z.Member)
				l.client.ZAdd(
					ctx,
					logOfK,
					redis.Z{Score: z.Score, Member: change(i, z.Member.(string))},
				)
			}
		}
	}
	for name, do := range map[string]func(){
		"totals all the same": middle(func(i int, _ string) string { return fmt.Sprintf("200:1:i%d:", i) }),
		"totals fall":         middle(func(i int, _ string) string { return fmt.Sprintf("%d:1:i%d:", 400-i, i) }),
		"totals all too high": middle(func(i int, _ string) string { return fmt.Sprintf("999999:1:i%d:", i) }),
		"no entries":          middle(func(i int, _ string) string { return fmt.Sprintf("hello %d", i) }),
		"at no time": func() {
			l.client.ZAdd(ctx, logOfK, redis.Z{Score: inf, Member: l.client.ZRange(ctx, logOfK, 200, 200).Val()[0]})
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
