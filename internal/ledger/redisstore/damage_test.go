package redisstore_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redisstore"
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

// TestStateOfHoldsLost: a bucket of which only holds are left denies, is found, and is repaired.
func TestStateOfHoldsLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l := openEnv(t, s.URL())
	setAside(t, l, reserveOf("default.r", 90, time.Hour))
	must(t, l.client.Del(t.Context(), stateOfK))
	l = openEnv(t, s.URL())
	if d, err := l.Charge(t.Context(), one("k", 20)); d.Allowed || !isDamaged(err) {
		t.Errorf("20 beside 90 held: %+v, %v", d, err)
	}
	if all, err := l.BucketsOf(t.Context(), "k"); err != nil || len(all) != 1 || all[0].Units != 90 {
		t.Errorf("listed: %+v, %v", all, err)
	}
	check(t, l, true)
	if d, err := l.Charge(t.Context(), one("k", 20)); err != nil || d.Allowed {
		t.Errorf("after the repair: %+v, %v", d, err)
	}
	sound(t, l)
}

// TestDamageDenies: damage to anything but the entries never makes room: it denies, and names the
// bucket. A check finds it, and a repair makes of it what the entries say.
func TestDamageDenies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Clock: true})
	c := admin(t, s.Addr)
	ctx := t.Context()
	hold := func(change func(string) string) func() error {
		return func() error {
			return c.HSet(ctx, holdsOfK, "default.r", change(c.HGet(ctx, holdsOfK, "default.r").Val())).Err()
		}
	}
	word := func(n int, now int64) func() error {
		return hold(func(h string) string {
			words := strings.Split(h, " ")
			words[n] = strconv.FormatInt(now, 10)
			return strings.Join(words, " ")
		})
	}
	entry := func(rank int64, at float64, old, now string) func() error {
		return func() error {
			replace(t, &env{client: c}, rank, func(z *redis.Z) {
				z.Score, z.Member = z.Score+at, strings.Replace(z.Member.(string), old, now, 1)
			})
			return nil
		}
	}
	for name, test := range map[string]struct {
		damage func() error
		finds  string
	}{
		"lost state":    {func() error { return c.Del(ctx, stateOfK).Err() }, "its state is missing"},
		"foreign state": {func() error { return c.Set(ctx, stateOfK, "1", 0).Err() }, "not what was"},
		"lost holds":    {func() error { return c.Del(ctx, holdsOfK).Err() }, "20 units stay held"},
		"smaller hold": {hold(func(h string) string { return "1" + strings.TrimPrefix(h, "20") }),
			"20 units stay held"},
		"hold of nothing":     {hold(func(h string) string { return "-3" + h }), "20 units stay held"},
		"unread hold":         {hold(func(string) string { return "five" }), "cannot be read"},
		"hold made later":     {word(3, start.Add(20*time.Hour).UnixMicro()), "20 units stay held"},
		"hold that is over":   {word(4, 1), "20 units stay held"},
		"hold before 1970":    {word(4, -5), "20 units stay held"},
		"drawn hold":          {word(2, 19), "20 units stay held"},
		"word of a hold":      {hold(func(h string) string { return strings.Replace(h, "release", "relapse", 1) }), "stay held"},
		"newest ahead":        {entry(-1, 126144000000000, "", ""), "its newest time is 2030"},
		"total of the oldest": {entry(0, 0, "10:10:", "35:10:"), "4 of 5"},
		"totals of the oldest two": {func() error {
			return errors.Join(entry(0, 0, "10:10:", "1010:10:")(), entry(1, 0, "20:10:", "1020:10:")())
		}, "3 of 5"},
		"total of the newest": {entry(-1, 0, "50:", "20:"), "1 of 5"},
		"not listed":          {func() error { return c.Del(ctx, "quota:{k}::buckets").Err() }, "list of buckets"},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, c.FlushAll(ctx))
			s.SetNow(t, start)
			first := openEnv(t, s.URL())
			setAside(t, first, reserveOf("default.r", 20, time.Hour))
			for range 5 {
				allow(t, first, one("k", 10))
			}
			sound(t, first)
			noError(t, test.damage())
			l := openEnv(t, s.URL()) // it has seen nothing before
			charge := one("k", 31)
			if d, err := l.Charge(ctx, charge); d.Allowed ||
				!isDamaged(err) && name != "total of the oldest" && name != "not listed" {
				t.Errorf("31 beside 50 used and 20 held of 100: %+v, %v", d, err)
			}
			before := dump(t, c, "k")
			said := check(t, l, false)
			if !strings.Contains(said, test.finds) {
				t.Errorf("found %q, want %q", said, test.finds)
			}
			if after := dump(t, c, "k"); after != before {
				t.Errorf("the check changed\n%s to\n%s", before, after)
			}
			if again := check(t, l, true); again != said {
				t.Errorf("the repair found %q", again)
			}
			sound(t, l)
			u, err := l.Usage(ctx, "k", hundred)
			if err != nil || u.Buckets[0].Limits[0].Used != 50 || u.Buckets[0].Held != 20 {
				t.Errorf("after the repair: %+v, %v", u, err)
			}
			s.SetNow(t, start.Add(23*time.Hour)) // any hold that was in doubt is held for a day
			if d, err := l.Charge(ctx, one("k", 51)); err != nil || d.Allowed {
				t.Errorf("51 beside 50 used: %+v, %v", d, err)
			}
			s.SetNow(t, start)
			allow(t, l, one("k", 30))
			entriesOf(t, l, "k")
		})
	}
}

// TestFlippedBitsMakeNoRoom: a flipped bit of any stored value but the entries allows no charge
// that was denied, whether charge.lua decides or the rule.
func TestFlippedBitsMakeNoRoom(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Clock: true})
	s.SetNow(t, start)
	l, c := openEnv(t, s.URL()), admin(t, s.Addr)
	ctx := t.Context()
	window, err := quota.ParseWindow("restoring 1/1m", "")
	noError(t, err)
	limits := append(hundred[:1:1], quota.Limit{Bucket: "default", Units: 90, Window: window})
	setAside(t, l, reserveOf("default.r", 20, time.Hour))
	lapsing := reserveOf("default.w", 5, time.Hour)
	lapsing.Lapse = quota.LapseCharge
	setAside(t, l, lapsing)
	charge := one("k", 60)
	charge.Limits = limits
	allow(t, l, charge)
	s.SetNow(t, start.Add(time.Minute))
	denied := func() bool {
		store, err := redisstore.Open(ctx, s.URL())
		noError(t, err)
		defer store.Close()
		fresh := newEnv(t, store)
		plain, dry := one("k", 16), one("k", 16)
		dry.Limits, dry.DryRun = limits, true
		d, _ := fresh.Charge(ctx, plain)
		other, _ := fresh.Charge(ctx, dry)
		return !d.Allowed && !other.Allowed
	}
	if !denied() {
		t.Fatal("16 fit beside 60 used and 25 held of 100")
	}
	flips := func(text string, set func(string)) {
		t.Helper()
		for i := range len(text) {
			for bit := range 8 {
				changed := []byte(text)
				changed[i] ^= 1 << bit
				if set(string(changed)); !denied() {
					t.Errorf("allowed with bit %d of byte %d of %q flipped", bit, i, text)
				}
			}
		}
		set(text)
	}
	flips(c.Get(ctx, stateOfK).Val(), func(text string) { must(t, c.Set(ctx, stateOfK, text, 0)) })
	for id, text := range c.HGetAll(ctx, holdsOfK).Val() {
		flips(text, func(text string) { must(t, c.HSet(ctx, holdsOfK, id, text)) })
		was := id
		flips(id, func(now string) {
			must(t, c.HDel(ctx, holdsOfK, was))
			must(t, c.HSet(ctx, holdsOfK, now, text))
			was = now
		})
	}
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

// TestRepairWhileCharged: repairs and charges at once lose no entry, and leave sound books.
func TestRepairWhileCharged(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t, redistest.Options{}).URL()
	l := openEnv(t, url)
	for range 20 {
		allow(t, l, one("k", 1))
	}
	must(t, l.client.ZRemRangeByRank(t.Context(), logOfK, 5, 5))
	results := make(chan int)
	for n := range 4 {
		go func() {
			other, allowed := openEnv(t, url), 0
			for i := range 15 {
				c := one("k", 1)
				if (n+i)%2 == 0 {
					c.Key = c.ID
				}
				if d, err := other.Charge(t.Context(), c); err == nil && d.Allowed {
					allowed++
				} else if err != nil && !isDamaged(err) {
					t.Error(err)
				}
			}
			results <- allowed
		}()
	}
	for range 5 {
		check(t, l, true)
	}
	allowed := 19
	for range 4 {
		allowed += <-results
	}
	check(t, l, true)
	sound(t, l)
	if n := len(entriesOf(t, l, "k")); n != allowed {
		t.Errorf("%d entries, %d were allowed", n, allowed)
	}
	if d, err := l.Charge(t.Context(), one("k", int64(101-allowed))); err != nil || d.Allowed {
		t.Errorf("beyond the limit: %+v, %v", d, err)
	}
}
