package ledger_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/quota/quotatest"
)

var epoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// store is a ledger with a clock that the test sets, and with direct access to its data, as any
// program has.
type store struct {
	*ledger.Ledger
	set   func(time.Time)
	now   time.Time
	open  func() *ledger.Ledger // opens another handle, with the same clock
	redis *redis.Client         // nil on SQLite
	file  *sql.DB               // nil on Redis
}

// pass moves the clock by d, which may be negative.
func (s *store) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.set(s.now)
}

// fresh returns a new handle on the store, without cached state.
func (s *store) fresh() *store {
	other := *s
	other.Ledger = s.open()
	return &other
}

// onBoth runs a test on SQLite and on Redis.
func onBoth(t *testing.T, test func(t *testing.T, s *store)) {
	for name, start := range map[string]func(*testing.T) *store{
		"sqlite": onSQLite, "redis": onRedis,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

func onSQLite(t *testing.T) *store {
	var clock quotatest.Clock
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := &store{set: func(now time.Time) { clock.Set(t, now) }, now: epoch}
	s.open = func() *ledger.Ledger {
		l, err := ledger.OpenFile(t.Context(), path)
		must(t, err)
		l.Now = clock.Now
		return l
	}
	s.begin(t)
	var err error
	options := "?_pragma=busy_timeout(10000)&_pragma=synchronous(off)"
	s.file, err = sql.Open("sqlite", "file:"+path+options)
	must(t, err)
	s.file.SetMaxOpenConns(1) // PRAGMA data_version counts the writes of other connections
	t.Cleanup(func() { s.file.Close() })
	return s
}

func onRedis(t *testing.T) *store {
	server := redistest.Start(t, redistest.Options{Clock: true})
	s := &store{set: func(now time.Time) { server.SetNow(t, now) }, now: epoch}
	s.open = func() *ledger.Ledger {
		l, err := ledger.Open(t.Context(), server.URL())
		must(t, err)
		return l
	}
	s.begin(t)
	s.redis = redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { s.redis.Close() })
	return s
}

// begin sets the clock and opens the first handle.
func (s *store) begin(t *testing.T) {
	s.pass(0)
	s.Ledger = s.open()
	t.Cleanup(func() { s.Close() })
}

// exec runs statements on the file of SQLite.
func (s *store) exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, text := range statements {
		_, err := s.file.ExecContext(t.Context(), text)
		must(t, err)
	}
}

// version returns a number that changes whenever another program writes to the data.
func (s *store) version(t testing.TB) (n string) {
	t.Helper()
	if s.redis == nil {
		must(t, s.file.QueryRowContext(t.Context(), "PRAGMA data_version").Scan(&n))
		return n
	}
	info := s.redis.Info(t.Context(), "persistence").Val()
	_, n, _ = strings.Cut(info, "rdb_changes_since_last_save:")
	n, _, _ = strings.Cut(n, "\r\n")
	return n
}

// clear removes all data of the ledger.
func (s *store) clear(t testing.TB) {
	t.Helper()
	if s.redis != nil {
		must(t, s.redis.FlushAll(t.Context()).Err())
		return
	}
	s.exec(t, "DELETE FROM entries", "DELETE FROM holds", "DELETE FROM buckets", "DELETE FROM sums")
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func costs(units int64, buckets ...string) (all []quota.Cost) {
	for _, b := range buckets {
		all = append(all, quota.Cost{Bucket: b, Units: units})
	}
	return all
}

func (s *store) charge(t rapid.TB, credential string, units int64, buckets ...string) (
	quota.Charge, quota.Decision) {
	t.Helper()
	c := quota.Charge{Credential: credential, ID: quota.NewID(time.Now()), Unlimited: true,
		Costs: costs(units, buckets...), Labels: quota.Labels{"job": "x"}}
	d, err := s.Charge(context.Background(), c)
	must(t, err)
	return c, d
}

// hundred allows 100 units in 24 hours.
var hundred = dayOf(100)

func dayOf(units int64) []quota.Limit {
	return []quota.Limit{{Bucket: "default", Units: units, Window: quota.Sliding(24 * time.Hour)}}
}

// ask charges the bucket "default" of "k" and returns the decision.
func (s *store) ask(units int64, limits []quota.Limit) (quota.Decision, error) {
	return s.Charge(context.Background(), quota.Charge{Credential: "k",
		ID: quota.NewID(time.Now()), Costs: costs(units, "default"), Limits: limits})
}

// spend makes a charge, which must be allowed.
func (s *store) spend(t testing.TB, units int64, limits []quota.Limit) {
	t.Helper()
	if d, err := s.ask(units, limits); err != nil || !d.Allowed {
		t.Errorf("charge of %d: %+v, %v", units, d, err)
	}
}

// expectDenied makes a charge, which must be denied.
func (s *store) expectDenied(t testing.TB, units int64, limits []quota.Limit) quota.Decision {
	t.Helper()
	d, err := s.ask(units, limits)
	if err != nil || d.Allowed {
		t.Errorf("charge of %d: %+v, %v; want it denied", units, d, err)
	}
	return d
}

// hold makes a reservation, which must be allowed.
func (s *store) hold(t testing.TB, id string, units int64, ttl time.Duration, lapse quota.Lapse,
	limits []quota.Limit) {
	t.Helper()
	d, err := s.Reserve(t.Context(), quota.Reserve{Credential: "k", ID: "default." + id, TTL: ttl,
		Lapse: lapse, Costs: costs(units, "default"), Limits: limits})
	if err != nil || !d.Allowed {
		t.Errorf("reserve: %+v, %v", d, err)
	}
}

// expectUsage requires the given numbers of used and held units.
func (s *store) expectUsage(t testing.TB, used, held int64, limits []quota.Limit) {
	t.Helper()
	u, err := s.Usage(t.Context(), "k", limits)
	if err != nil || u.Buckets[0].Limits[0].Used != used || u.Buckets[0].Held != held {
		t.Errorf("%+v, %v; want %d used, %d held", u, err, used, held)
	}
}

// stored returns the number of entries in the data, without those of lapsed holds that are not
// written yet.
func (s *store) stored(t testing.TB) int {
	t.Helper()
	entries, err := s.Store.Entries(t.Context(), quota.Query{Credential: "k", Bucket: "default"})
	must(t, err)
	return len(entries)
}

// check returns the findings of a check of the bucket "default" of "k", one per line.
func (s *store) check(t testing.TB, repair bool) (text string) {
	t.Helper()
	found, err := s.Check(t.Context(), "k", "default", repair)
	must(t, err)
	for _, f := range found {
		text += f.What + ": " + f.Repair + "\n"
	}
	return text
}

// expectSound requires that a check finds nothing.
func (s *store) expectSound(t testing.TB) {
	t.Helper()
	if found := s.check(t, false); found != "" {
		t.Errorf("found %s", found)
	}
}
