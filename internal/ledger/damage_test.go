package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// damagesOfSQLite maps each kind of damage to the statement that causes it and the text that a
// check then reports.
var damagesOfSQLite = map[string][2]string{
	"lost row":          {"DELETE FROM buckets", "row in buckets is missing"},
	"lost hold":         {"DELETE FROM holds", "20 units stay held"},
	"smaller hold":      {"UPDATE holds SET units = 1", "20 units stay held"},
	"negative draw":     {"UPDATE holds SET drawn = -3", "20 units stay held"},
	"drawn hold":        {"UPDATE holds SET drawn = 19", "20 units stay held"},
	"hold that is over": {"UPDATE holds SET expires_at = created_at", "20 units stay held"},
	"hold before 1970":  {"UPDATE holds SET expires_at = -5", "20 units stay held"},
	"hold made later":   {"UPDATE holds SET created_at = created_at + 72000000000", "20 units stay"},
	"lapse of a hold":   {"UPDATE holds SET lapse = 'relapse'", "20 units stay held"},
	"manual of a hold":  {"UPDATE holds SET manual = -1", "not what was written"},
	"hold elsewhere":    {"UPDATE holds SET bucket = 'other'", "20 units stay held"},
	"row elsewhere":     {"UPDATE buckets SET bucket = 'other'", "is missing"},
	"floor":             {"UPDATE buckets SET floor = floor + 90000000000", "not what was"},
	"retention":         {"UPDATE buckets SET keep = keep / 2", "not what was"},
	"levels":            {"UPDATE buckets SET levels = '[{}]'", "not what was"},
	"recorded":          {"UPDATE buckets SET recorded = 3", "20 units stay held"},
	"newest ahead": {"UPDATE entries SET at = at + 126144000000000 WHERE total = 50",
		"its newest time is 2030"},
	"total of the oldest": {"UPDATE entries SET total = total + 25 WHERE total = 10", "4 of 5"},
	"total of the newest": {"UPDATE entries SET total = 20 WHERE total = 50", "1 of 5"},
}

const (
	logOfK    = "quota:{k}:default:log"
	stateOfK  = "quota:{k}:default:state"
	holdsOfK  = "quota:{k}:default:holds"
	bucketsOf = "quota:{k}::buckets"
)

// damage is a change that another program makes to the data of a ledger.
type damage struct {
	do    func()
	finds string // text that a check then reports
}

func damagesOf(t *testing.T, s *store) map[string]damage {
	if s.redis == nil {
		all := make(map[string]damage)
		for name, d := range damagesOfSQLite {
			all[name] = damage{func() { s.exec(t, d[0]) }, d[1]}
		}
		return all
	}
	ctx, c := t.Context(), s.redis
	lose := func(key string) func() { return func() { must(t, c.Del(ctx, key).Err()) } }
	hold := func(change func(string) string) func() {
		return func() {
			text := c.HGet(ctx, holdsOfK, "default.r").Val()
			must(t, c.HSet(ctx, holdsOfK, "default.r", change(text)).Err())
		}
	}
	word := func(n int, now int64) func() {
		return hold(func(text string) string {
			words := strings.Split(text, " ")
			words[n] = strconv.FormatInt(now, 10)
			return strings.Join(words, " ")
		})
	}
	entry := func(rank int64, later float64, was, now string) func() {
		return func() {
			z := c.ZRangeWithScores(ctx, logOfK, rank, rank).Val()[0]
			must(t, c.ZRem(ctx, logOfK, z.Member).Err())
			must(t, c.ZAdd(ctx, logOfK, redis.Z{Score: z.Score + later,
				Member: strings.Replace(z.Member.(string), was, now, 1)}).Err())
		}
	}
	return map[string]damage{
		"lost state":      {lose(stateOfK), "its state is missing"},
		"foreign state":   {func() { must(t, c.Set(ctx, stateOfK, "1", 0).Err()) }, "not what was"},
		"lost holds":      {lose(holdsOfK), "20 units stay held"},
		"smaller hold":    {hold(func(h string) string { return "1" + h[2:] }), "20 units stay held"},
		"hold of nothing": {hold(func(h string) string { return "-3" + h }), "20 units stay held"},
		"unread hold":     {hold(func(string) string { return "five" }), "cannot be read"},
		"word of a hold": {hold(func(h string) string {
			return strings.Replace(h, "release", "relapse", 1)
		}), "stay held"},
		"hold made later":     {word(3, epoch.Add(20*time.Hour).UnixMicro()), "20 units stay held"},
		"hold that is over":   {word(4, 1), "20 units stay held"},
		"hold before 1970":    {word(4, -5), "20 units stay held"},
		"drawn hold":          {word(2, 19), "20 units stay held"},
		"newest ahead":        {entry(-1, 126144000000000, "", ""), "its newest time is 2030"},
		"total of the oldest": {entry(0, 0, "10:10:", "35:10:"), "4 of 5"},
		"totals of the oldest two": {func() {
			entry(0, 0, "10:10:", "1010:10:")()
			entry(1, 0, "20:10:", "1020:10:")()
		}, "3 of 5"},
		"total of the newest": {entry(-1, 0, "50:", "20:"), "1 of 5"},
		"not listed":          {lose(bucketsOf), "list of buckets"},
	}
}

// isDamaged reports whether err says that the bucket "default" of "k" is damaged.
func isDamaged(err error) bool {
	damaged, is := errors.AsType[*quota.DamagedError](err)
	return is && damaged.Bucket == "default" && damaged.Credential == "k"
}

// TestDamageDenies: if anything but the entries is damaged, charges are denied with an error that
// names the bucket. A check finds the damage, and a repair restores the state from the entries.
func TestDamageDenies(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		for name, test := range damagesOf(t, s) {
			noticed := name != "not listed" && (s.redis == nil || name != "total of the oldest")
			t.Run(name, func(t *testing.T) { testDamage(t, s, test, 5, noticed) })
			if name == "lost row" || name == "lost state" {
				t.Run("holds only", func(t *testing.T) { testDamage(t, s, test, 0, true) })
			}
		}
	})
}

// testDamage damages a bucket that has the given number of charges. noticed means that decisions
// notice the damage, not only checks.
func testDamage(t *testing.T, first *store, test damage, charges int64, noticed bool) {
	first.clear(t)
	first.now = epoch
	first.pass(0)
	first.hold(t, "r", 20, time.Hour, quota.LapseRelease, hundred)
	for range charges {
		first.spend(t, 10, hundred)
	}
	used := 10 * charges
	first.expectSound(t)
	test.do()
	s := first.fresh()
	defer s.Close()
	if d, err := s.ask(81-used, hundred); d.Allowed || noticed && !isDamaged(err) {
		t.Errorf("one unit too many, with %d used and 20 held of 100: %+v, %v", used, d, err)
	}
	all, err := s.BucketsOf(t.Context(), "k")
	if listed := slices.Contains(quota.BucketNames(all), "default"); err != nil ||
		listed != !strings.HasPrefix(test.finds, "list") || used == 0 && all[0].Units != 20 {
		t.Errorf("listed: %+v, %v", all, err)
	}
	version := s.version(t)
	said := s.check(t, false)
	if !strings.Contains(said, test.finds) {
		t.Errorf("found %q, want %q", said, test.finds)
	}
	if s.version(t) != version {
		t.Error("the check wrote something")
	}
	if again := s.check(t, true); again != said {
		t.Errorf("the repair found %q, the check %q", again, said)
	}
	s.expectSound(t)
	s.expectUsage(t, used, 20, hundred)
	if used > 0 {
		s.pass(23 * time.Hour) // a repair holds the units of a doubtful hold for a day
		s.expectDenied(t, 101-used, hundred)
		s.pass(-23 * time.Hour)
	}
	s.spend(t, 80-used, hundred)
	s.stored(t)
}

// TestFlippedBitsMakeNoRoom: a flipped bit in any stored value except the entries never allows a
// charge that would be denied, whether the rule decides or, on Redis, charge.lua.
func TestFlippedBitsMakeNoRoom(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		window, err := quota.ParseWindow("restoring 1/1m", "")
		must(t, err)
		limits := append(dayOf(100), quota.Limit{Bucket: "default", Units: 90, Window: window})
		s.hold(t, "r", 20, time.Hour, quota.LapseRelease, hundred)
		s.hold(t, "w", 5, time.Hour, quota.LapseCharge, hundred)
		s.spend(t, 60, limits)
		s.pass(time.Minute)
		expectDenied := func(format string, args ...any) {
			t.Helper()
			l := s
			if s.redis != nil { // a process caches the holds that it has read from Redis
				l = s.fresh()
				defer l.Close()
			}
			d, _ := l.ask(16, hundred)
			other, _ := l.ask(16, limits)
			if d.Allowed || other.Allowed {
				t.Fatalf("16 units were allowed, with 60 used and 25 held of 100, "+format, args...)
			}
		}
		expectDenied("without damage")
		if s.redis != nil {
			flipTexts(t, s, expectDenied)
		} else {
			flipColumns(t, s, expectDenied)
		}
	})
}

func flipTexts(t *testing.T, s *store, expectDenied func(format string, args ...any)) {
	ctx, c := t.Context(), s.redis
	flips := func(text string, set func(string)) {
		t.Helper()
		for i := range len(text) {
			for bit := range 8 {
				changed := []byte(text)
				changed[i] ^= 1 << bit
				set(string(changed))
				expectDenied("with bit %d of byte %d of %q flipped", bit, i, text)
			}
		}
		set(text)
	}
	flips(c.Get(ctx, stateOfK).Val(), func(text string) {
		must(t, c.Set(ctx, stateOfK, text, 0).Err())
	})
	for id, text := range c.HGetAll(ctx, holdsOfK).Val() {
		flips(text, func(text string) { must(t, c.HSet(ctx, holdsOfK, id, text).Err()) })
		was := id
		flips(id, func(now string) {
			must(t, c.HDel(ctx, holdsOfK, was).Err())
			must(t, c.HSet(ctx, holdsOfK, now, text).Err())
			was = now
		})
	}
}

func flipColumns(t *testing.T, s *store, expectDenied func(format string, args ...any)) {
	s.exec(t, "CREATE TABLE h AS SELECT * FROM holds", "CREATE TABLE b AS SELECT * FROM buckets")
	flip := func(change string) {
		t.Helper()
		s.exec(t, change)
		expectDenied("after %s", change)
		s.exec(t, "DELETE FROM holds", "INSERT INTO holds SELECT * FROM h", "DELETE FROM buckets",
			"INSERT INTO buckets SELECT * FROM b")
	}
	for table, columns := range map[string]string{
		"holds":   "units most drawn created_at expires_at manual",
		"buckets": "suspended_until reset_at keep floor recorded digest",
	} {
		for _, column := range strings.Fields(columns) {
			for bit := range 63 {
				flip(fmt.Sprintf("UPDATE %s SET %s = (%[2]s | %d) - (%[2]s & %[3]d)", table, column,
					int64(1)<<bit))
			}
		}
	}
	for table, columns := range map[string]string{
		"holds": "credential bucket id lapse", "buckets": "credential bucket levels",
	} {
		for _, column := range strings.Fields(columns) {
			for place := range 12 {
				flip(fmt.Sprintf("UPDATE %s SET %s = substr(%[2]s, 1, %[3]d) || "+
					"char(unicode(substr(%[2]s, %[3]d + 1, 1)) + 1) || substr(%[2]s, %[3]d + 2) "+
					"WHERE length(%[2]s) > %[3]d", table, column, place))
			}
		}
	}
}

// TestClockJumpsFarAhead: after a jump of the clock, the log continues at the new time. Once the
// clock is set back, the ledger denies all charges until the bucket is repaired. The units then
// count from the time of the repair.
func TestClockJumpsFarAhead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		s.hold(t, "r", 30, time.Hour, quota.LapseRelease, hundred)
		s.spend(t, 70, hundred)
		s.expectDenied(t, 1, hundred)
		years := epoch.AddDate(2, 0, 0).Sub(epoch)
		s.pass(years)
		_, err := s.Release(t.Context(), quota.Release{Credential: "k", Reservation: "default.r"})
		if !errors.Is(err, quota.ErrNoReservation) {
			t.Errorf("release of a lapsed reservation: %v", err)
		}
		s.spend(t, 60, hundred)
		s.pass(-years)
		if _, err := s.ask(1, hundred); !isDamaged(err) ||
			!strings.Contains(err.Error(), "ledger check --repair") {
			t.Errorf("charge after the clock was set back: %v", err)
		}
		if found := s.check(t, true); !strings.Contains(found, "its newest time is 2028") {
			t.Errorf("found %s", found)
		}
		s.expectSound(t)
		d := s.expectDenied(t, 41, hundred)
		if after := d.RetryAt.Sub(s.now); after.Truncate(time.Second) != 24*time.Hour {
			t.Errorf("41 units, with 60 just used of 100, fit after %s, want 24h", after)
		}
		s.spend(t, 40, hundred)
	})
}

// recorder is a store that records the maximum number of entries that a change appends.
type recorder struct {
	ledger.Store
	most int
}

func (r *recorder) Update(ctx context.Context, scope quota.Scope,
	decide func(*quota.Account) (quota.Change, error)) error {
	return r.Store.Update(ctx, scope, func(a *quota.Account) (quota.Change, error) {
		ch, err := decide(a)
		for _, b := range ch.Buckets {
			r.most = max(r.most, len(b.Append))
		}
		return ch, err
	})
}

// TestManyLapseTogether: if thousands of holds lapse together, the ledger writes their entries in
// steps of at most 500. Reading the usage or denying a charge writes none.
func TestManyLapseTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		const holds = 1200 // too many for one command or step
		const callers = 50 // concurrent, so that they share transactions
		limits := dayOf(10_000)
		var all sync.WaitGroup
		for caller := range callers {
			all.Go(func() {
				for i := caller; i < holds; i += callers {
					s.hold(t, fmt.Sprint("r", i), 1, time.Minute, quota.LapseCharge, limits)
				}
			})
		}
		all.Wait()
		s.pass(time.Hour)
		s.expectUsage(t, holds, 0, limits)
		s.expectDenied(t, 10_001-holds, limits)
		if n := s.stored(t); n != 0 {
			t.Errorf("reading the usage and denying a charge wrote %d entries", n)
		}
		changes := &recorder{Store: s.Store}
		s.Store = changes
		s.spend(t, 10_000-holds, limits)
		if changes.most != 500 {
			t.Errorf("one step appended %d entries, want 500", changes.most)
		}
		if n := s.stored(t); n != holds+1 {
			t.Errorf("%d entries, want %d", n, holds+1)
		}
		if s.redis != nil {
			if left := s.redis.TTL(t.Context(), "quota:{k}:default:lapsed").Val(); left < quota.Retention {
				t.Errorf("the lapsed reservations expire in %v", left)
			}
		}
		s.expectSound(t)
	})
}

// TestEmptyFileIsNoLedger: a file that is empty, or is not a ledger, is not opened as one.
func TestEmptyFileIsNoLedger(t *testing.T) {
	for _, content := range []string{"", "S"} {
		path := filepath.Join(t.TempDir(), "ledger.db")
		must(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := ledger.OpenFile(t.Context(), path)
		if !errors.Is(err, quota.ErrLedgerUnusable) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", content, err)
		}
	}
}
