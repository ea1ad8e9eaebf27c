package redisstore_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// replace changes an entry of the bucket "default" of "k".
func replace(t *testing.T, l *env, rank int64, change func(*redis.Z)) {
	t.Helper()
	z := l.client.ZRangeWithScores(t.Context(), logOfK, rank, rank).Val()[0]
	must(t, l.client.ZRem(t.Context(), logOfK, z.Member))
	change(&z)
	must(t, l.client.ZAdd(t.Context(), logOfK, z))
}

// TestKeyOfAnotherKind: a key that something else wrote is named.
func TestKeyOfAnotherKind(t *testing.T) {
	t.Parallel()
	l := openEnv(t, redistest.Start(t, redistest.Options{}).URL())
	const answerOfK = "quota:{k}::answer:key x"
	for key, put := range map[string]func(key string) error{
		logOfK:    func(key string) error { return l.client.Set(t.Context(), key, "x", 0).Err() },
		stateOfK:  func(key string) error { return l.client.LPush(t.Context(), key, "x").Err() },
		holdsOfK:  func(key string) error { return l.client.Set(t.Context(), key, "x", 0).Err() },
		answerOfK: func(key string) error { return l.client.LPush(t.Context(), key, "x").Err() },
	} {
		must(t, l.client.FlushAll(t.Context()))
		allow(t, l, one("k", 1))
		setAside(t, l, reserveOf("default.r", 5, time.Hour))
		must(t, l.client.Del(t.Context(), key))
		noError(t, put(key))
		found := check(t, l, false) // of the bucket, which has no answers
		if key != answerOfK && !strings.Contains(found, "the key "+key+" is not a ") {
			t.Errorf("%s: found %s", key, found)
		}
		r := reserveOf("default.s", 95, time.Hour)
		r.Key = "x"
		fresh := openEnv(t, "redis://"+l.client.(*redis.Client).Options().Addr)
		if d, err := fresh.Reserve(t.Context(), r); d.Allowed ||
			!errors.Is(err, quota.ErrLedgerUnusable) || !says(err, "the key "+key+" is not a ") {
			t.Errorf("%s: %+v, %v", key, d, err)
		}
	}
}

// TestForeignListOfBuckets: a change that lists the bucket is refused before anything is written,
// and the error names the key.
func TestForeignListOfBuckets(t *testing.T) {
	t.Parallel()
	l := openEnv(t, redistest.Start(t, redistest.Options{}).URL())
	const list = "quota:{k}::buckets"
	must(t, l.client.Set(t.Context(), list, "x", 0))
	before := dump(t, l.client, "k")
	isError(t, chargeErr(t, l), quota.ErrLedgerUnusable, "the key "+list+" is not a sorted set")
	if after := dump(t, l.client, "k"); after != before {
		t.Errorf("the charge wrote\n%s, before\n%s", after, before)
	}
	if _, err := l.BucketsOf(t.Context(), "k"); !says(err, "the key "+list+" is not a sorted set") {
		t.Error(err)
	}
	must(t, l.client.Del(t.Context(), list))
	allow(t, l, one("k", 1))
	sound(t, l)
}

// TestForeignKeysOfATrim: entries are not forgotten if the lapses or notes cannot be, because the
// sums would keep them.
func TestForeignKeysOfATrim(t *testing.T) {
	t.Parallel()
	l := openEnv(t, redistest.Start(t, redistest.Options{}).URL())
	allow(t, l, one("k", 1))
	for _, name := range []string{"lapsed", "notes"} {
		foreign := "quota:{k}:default:" + name
		must(t, l.client.Set(t.Context(), foreign, "x", 0))
		_, err := l.store.TrimAround(t.Context(), "k", "default", func() {})
		isError(t, err, quota.ErrLedgerUnusable, "the key "+foreign+" is not a sorted set")
		must(t, l.client.Del(t.Context(), foreign))
		sound(t, l)
	}
}

// TestLostListOfBuckets: a check finds the parts of a split bucket although the list of buckets is
// lost, and a repair lists them.
func TestLostListOfBuckets(t *testing.T) {
	t.Parallel()
	l := openEnv(t, redistest.Start(t, redistest.Options{}).URL())
	var parts []string
	for _, part := range []string{"model/a", "model/b"} {
		c := one("k", 1)
		c.Costs[0].Bucket, c.Unlimited, c.Limits = part, true, nil
		allow(t, l, c)
		parts = append(parts, part)
	}
	must(t, l.client.Del(t.Context(), "quota:{k}::buckets"))
	must(t, l.client.Set(t.Context(), "quota:{kk}:other:state", "x", 0))
	if names, err := l.AllBuckets(t.Context(), "k"); err != nil || !slices.Equal(names, parts) {
		t.Errorf("%v, %v", names, err)
	}
	for _, part := range parts {
		found, err := l.Check(t.Context(), "k", part, true)
		if err != nil || len(found) != 1 || !strings.Contains(found[0].What, "list of buckets") {
			t.Errorf("%+v, %v", found, err)
		}
	}
	all, err := l.BucketsOf(t.Context(), "k")
	if err != nil || !slices.Equal(quota.BucketNames(all), parts) {
		t.Errorf("listed: %+v, %v", all, err)
	}
}

// TestDamagedSums: a repair restores each damaged sum, changes no other, and deletes fields that
// are not sums.
func TestDamagedSums(t *testing.T) {
	t.Parallel()
	_, l := clocked(t)
	for _, labels := range []quota.Labels{nil, {"job": "x"}, {"job": "y"}} {
		c := one("k", 3)
		c.Labels = labels
		allow(t, l, c)
	}
	sums := "quota:{k}:default:sums:" + start.UTC().Format(time.DateOnly)
	whole := l.client.HGetAll(t.Context(), sums).Val()
	at := start.UTC().Format("15:04")
	for _, field := range []string{at + " calls job=x", at + " beyond job=x", at + " calls ",
		at + " calls job=z", at + " c job=y", "24:00 calls job=y", "00:00 calls a b", "x"} {
		for _, value := range []string{"abc", "7", "99999999999999999999", "9223372036854775807",
			"-9223372036854775808"} {
			must(t, l.client.HSet(t.Context(), sums, field, value))
			if found := check(t, l, true); found == "" {
				t.Errorf("%q is %s: found nothing", field, value)
			}
			sound(t, l)
			if got := l.client.HGetAll(t.Context(), sums).Val(); !maps.Equal(got, whole) {
				t.Fatalf("%q was %s: got %v, want %v", field, value, got, whole)
			}
		}
	}
	allow(t, l, one("k", 1))
	sound(t, l)
}

// TestInterruptedRepair: a bucket denies after a repair that ended before all entries were written,
// until another repair completes the work.
func TestInterruptedRepair(t *testing.T) {
	t.Parallel()
	server, l := clocked(t)
	c := one("k", 1)
	c.Limits = []quota.Limit{{Bucket: "default", Units: 1000, Window: hundred[0].Window}}
	allow(t, l, c)
	addEntries(t, l, 600, start)
	must(t, l.client.ZRemRangeByRank(t.Context(), logOfK, 5, 5))
	ctx, cancel := context.WithCancel(t.Context())
	l.client.AddHook(once{"ZRANGEBYSCORE", func() {
		if strings.HasPrefix(l.client.Get(t.Context(), stateOfK).Val(), "repair ") {
			cancel()
		}
	}})
	if found, err := l.Check(ctx, "k", "default", true); !errors.Is(err, context.Canceled) {
		t.Errorf("found %v, %v", found, err)
	}
	must(t, l.client.Del(t.Context(), "quota:{k}::lock")) // it expires
	other := openEnv(t, server.URL())
	if d, err := other.Charge(t.Context(), c); d.Allowed || !isDamaged(err) {
		t.Errorf("charge in the middle of a repair: %+v, %v", d, err)
	}
	if found := check(t, other, true); !strings.Contains(found, "a repair of it was interrupted") {
		t.Errorf("found %s", found)
	}
	sound(t, other)
	c.Limits[0].Units = 601
	c.ID = "last"
	allow(t, other, c)
	if d, err := other.Charge(t.Context(), one("k", 1)); err != nil || d.Allowed {
		t.Errorf("charge of a full bucket: %+v, %v", d, err)
	}
}

// TestEntryOf1970: a repair ends, and leaves sound books, when the stamp of an entry was changed to
// one that no window reaches.
func TestEntryOf1970(t *testing.T) {
	t.Parallel()
	l := openEnv(t, redistest.Start(t, redistest.Options{}).URL())
	for range 3 {
		allow(t, l, one("k", 10))
	}
	replace(t, l, 1, func(z *redis.Z) { z.Score = 1 })
	if found := check(t, l, true); found == "" {
		t.Error("nothing is found")
	}
	sound(t, l)
	sums, err := l.Sums(t.Context(), quota.SumQuery{Credential: "k", Bucket: "default"})
	if err != nil || len(sums) != 1 || sums[0].Units != 20 {
		t.Errorf("%+v, %v", sums, err)
	}
	allow(t, l, one("k", 80))
}

// TestTotalsEnd: no total grows beyond what a double can distinguish from its neighbours.
func TestTotalsEnd(t *testing.T) {
	t.Parallel()
	l := openEnv(t, redistest.Start(t, redistest.Options{}).URL())
	allow(t, l, one("k", 1))
	replace(t, l, 0, func(z *redis.Z) { z.Member = "9007199254740990:1:x:" })
	allow(t, l, one("k", 1))
	if err := chargeErr(t, l); !isDamaged(err) || !says(err, "cannot grow") {
		t.Error(err)
	}
}

// TestUnreadableEntry denies, and is named: what it counted is unknown.
func TestUnreadableEntry(t *testing.T) {
	t.Parallel()
	l := openEnv(t, redistest.Start(t, redistest.Options{}).URL())
	for range 3 {
		allow(t, l, one("k", 10))
	}
	replace(t, l, 2, func(z *redis.Z) { z.Member = "thirty:10:x:" })
	if err := chargeErr(t, l); !isDamaged(err) || says(err, "--repair") {
		t.Error(err)
	}
	if found := check(t, l, true); !strings.Contains(found, "thirty:10:x:") {
		t.Error(found)
	}
	must(t, l.client.ZRem(t.Context(), logOfK, "thirty:10:x:"))
	check(t, l, true)
	sound(t, l)
	if n := allowedOf(t, l, 100); n != 80 {
		t.Errorf("allowed %d beside 20", n)
	}
}

// TestUnreadableInSearch: a denial whose time depends on an entry that cannot be read is an error,
// whether charge.lua decides or the rule.
func TestUnreadableInSearch(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l := openEnv(t, s.URL())
	for range 5 {
		allow(t, l, one("k", 10))
	}
	replace(t, l, 2, func(z *redis.Z) { z.Member = "thirty:10:x:" })
	for _, slow := range []bool{false, true} {
		l := openEnv(t, s.URL())
		l.store.Slow = slow
		if d, err := l.Charge(t.Context(), one("k", 65)); !isDamaged(err) {
			t.Errorf("slow %v: 15 units too many: %+v, %v", slow, d, err)
		}
	}
}
