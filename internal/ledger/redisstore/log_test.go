package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// TestReadableLog: the log is readable text in redis-cli.
func TestReadableLog(t *testing.T) {
	t.Parallel()
	_, l := clocked(t)
	for i, id := range []string{"a", "b"} {
		c := one("k", int64(10+i))
		c.ID, c.Labels = id, quota.Labels{"method": "youtube.videos.list", "region": "US"}
		allow(t, l, c)
	}
	got := l.client.ZRange(t.Context(), logOfK, -2, -1).Val()
	want := []string{"10:10:a:method=youtube.videos.list&region=US",
		"21:11:b:method=youtube.videos.list&region=US"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestKeysRenewed: the first charge of an hour renews the log's expiry. Within an hour, the expiry
// is also renewed, with that of earlier sums, if the log is rewritten or must be kept longer.
func TestKeysRenewed(t *testing.T) {
	t.Parallel()
	s, l := clocked(t)
	c := one("k", 1)
	d := allow(t, l, c)
	allow(t, l, one("k", 1))
	noError(t, l.Cancel(t.Context(), c, d))
	keys := []string{logOfK, stateOfK, "quota:{k}:default:sums:2026-06-01"}
	lasts := func(least time.Duration) {
		t.Helper()
		for _, key := range keys {
			if left := l.client.TTL(t.Context(), key).Val(); left < least {
				t.Errorf("%s lapses in %v, want %v at least", key, left, least)
			}
		}
	}
	lasts(quota.Retention)
	s.SetNow(t, start.Add(25*time.Hour))
	allow(t, l, one("k", 1))
	if left := l.client.TTL(t.Context(), logOfK).Val(); left != quota.Retention+24*time.Hour {
		t.Errorf("a day later the log lapses in %v", left)
	}
	c = one("k", 1)
	c.Limits = append(hundred[:1:1], quota.Limit{Bucket: "default", Units: 1000,
		Window: quota.Sliding(60 * 24 * time.Hour)})
	allow(t, l, c)
	lasts(60 * 24 * time.Hour)
	must(t, l.client.Del(t.Context(), logOfK))
	must(t, l.client.ZAdd(t.Context(), logOfK, redis.Z{Score: float64(start.UnixMicro()),
		Member: "7:1:id:labels=%"}))
	check(t, l, true)
	sound(t, l)
	lasts(60 * 24 * time.Hour)
}

// TestExpiredNamesUnlisted: expired buckets are removed from the list of buckets, those with holds
// are not, and the list is never read as a whole.
func TestExpiredNamesUnlisted(t *testing.T) {
	t.Parallel()
	s, l := clocked(t)
	const buckets = 200
	for i := range buckets {
		c := one("k", 1)
		c.Costs[0].Bucket, c.Unlimited, c.Limits = fmt.Sprintf("b%d", i), true, nil
		allow(t, l, c)
	}
	setAside(t, l, reserveOf("default.r", 1, 100*24*time.Hour))
	s.SetNow(t, start.AddDate(0, 0, 50))
	listed := func() []string {
		return l.client.ZRange(t.Context(), "quota:{k}::buckets", 0, -1).Val()
	}
	if n := len(listed()); n != buckets+1 {
		t.Errorf("%d buckets are listed at first", n)
	}
	for i := range 1 + buckets/64 { // 64 names at once
		c := one("k", 1)
		c.Costs[0].Bucket, c.Unlimited, c.Limits = fmt.Sprintf("new%d", i), true, nil
		allow(t, l, c)
	}
	want, got := []string{"default", "new0", "new1", "new2", "new3"}, listed()
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%v are listed, want %v", got, want)
	}
}

// TestKeysLapse: every key expires once it is unused, and not while a bucket needs it.
func TestKeysLapse(t *testing.T) {
	t.Parallel()
	s, l := clocked(t)
	allow(t, l, one("k", 1))
	keyed := one("k", 1)
	keyed.Key = "once"
	allow(t, l, keyed)
	setAside(t, l, reserveOf("default.r", 1, 200*24*time.Hour))
	noError(t, only(l.Adjust(t.Context(), adjustOf("k", -1))))
	ttl := func(key string) time.Duration { return l.client.TTL(t.Context(), key).Val() }
	for _, key := range l.client.Keys(t.Context(), "quota:*").Val() {
		if left := ttl(key); left < quota.Retention && key != "quota:{k}::buckets" {
			t.Errorf("%s lapses in %v", key, left)
		}
	}
	held := 200*24*time.Hour + quota.Retention
	if ttl(stateOfK) < held || ttl(holdsOfK) < held || ttl(logOfK) > held {
		t.Errorf("state %v, holds %v, log %v", ttl(stateOfK), ttl(holdsOfK), ttl(logOfK))
	}
	s.SetNow(t, start.Add(199*24*time.Hour))
	allow(t, l, one("k", 1)) // renews the keys that expire earlier
	d, err := l.Charge(t.Context(), one("k", 99))
	if err != nil || d.Allowed || ttl(stateOfK) < quota.Retention {
		t.Errorf("with the hold: %+v, %v, state %v", d, err, ttl(stateOfK))
	}
	noError(t, l.Suspend(t.Context(), quota.Suspension{Credential: "k", Bucket: "default",
		Until: start.AddDate(3, 0, 0)}))
	s.SetNow(t, start.AddDate(2, 11, 0))
	if d, err := l.Charge(t.Context(), one("k", 1)); err != nil || d.Limit != quota.Suspended {
		t.Errorf("in the third year: %+v, %v", d, err)
	}
	s.SetNow(t, start.AddDate(5, 0, 0))
	if all := l.client.Keys(t.Context(), "quota:*").Val(); len(all) != 0 {
		t.Errorf("keys left after everything has expired: %v", all)
	}
	if n := allowedOf(t, l, 150); n != 100 {
		t.Errorf("allowed %d in a new log", n)
	}
}

// TestTrimmedByTwo: entries that two processes trim at the same time are subtracted from the sums
// once.
func TestTrimmedByTwo(t *testing.T) {
	t.Parallel()
	s, l := clocked(t)
	other := openEnv(t, s.URL())
	for i := range 300 {
		s.SetNow(t, start.Add(time.Duration(i)*time.Minute))
		c := one("k", 1)
		c.Labels = quota.Labels{"region": []string{"US", "BR"}[i%2]}
		c.Limits = []quota.Limit{{Bucket: "default", Units: 1000, Window: quota.Sliding(time.Hour)}}
		allow(t, l, c)
	}
	s.SetNow(t, start.Add(quota.Retention+5*time.Hour))
	before := len(entriesOf(t, l, "k"))
	for range 12 {
		allow(t, l, one("k", 1))
		allow(t, other, one("k", 1))
		sums, err := l.Sums(t.Context(), quota.SumQuery{Credential: "k", Bucket: "default"})
		log := entriesOf(t, l, "k")
		if want := quota.AddUp(log); err != nil || fmt.Sprint(sums) != fmt.Sprint(want) {
			t.Fatalf("sums %v, %v\nwant %v", sums, err, want)
		}
		if gone := before + 2 - len(log); gone > 2*64 {
			t.Errorf("%d entries forgotten by two charges", gone)
		}
		before = len(log)
		sound(t, l)
	}
	if before != 24 {
		t.Errorf("%d entries are left of 24 that are young", before)
	}
	s.SetNow(t, start.Add(2*quota.Retention))
	trim := func(want string, meanwhile func()) {
		t.Helper()
		got, err := l.store.TrimAround(t.Context(), "k", "default", meanwhile)
		if err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	trim("changed", func() { trim("done", func() {}) })
	trim("changed", func() { // entries after the oldest may have been rewritten
		noError(t, l.Suspend(t.Context(), quota.Suspension{Credential: "k", Bucket: "default",
			Until: start.AddDate(1, 0, 0)}))
	})
	sound(t, l)
}

// TestHoldsOfAnotherMoment: many holds are read after the rest of the snapshot, and are read again
// if one was released in between.
func TestHoldsOfAnotherMoment(t *testing.T) {
	t.Parallel()
	s, l := clocked(t)
	const holds = 502
	limits := []quota.Limit{{Bucket: "default", Units: holds, Window: hundred[0].Window}}
	for i := range holds {
		r := reserveOf(fmt.Sprintf("default.r%d", i), 1, time.Hour)
		r.Limits = limits
		setAside(t, l, r)
	}
	fresh := openEnv(t, s.URL())
	before(fresh, "HGETALL", func() { noError(t, only(l.Release(t.Context(), released("default.r0")))) })
	u, err := fresh.Usage(t.Context(), "k", limits)
	if err != nil || u.Buckets[0].Held != holds-1 {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestCheckWhileTrimmed: a check finds nothing if old entries are trimmed after it reads the sums
// and before it reads the log.
func TestCheckWhileTrimmed(t *testing.T) {
	t.Parallel()
	s, l := clocked(t)
	allow(t, l, one("k", 1))
	s.SetNow(t, start.Add(quota.Retention-time.Hour))
	allow(t, l, one("k", 1))
	s.SetNow(t, start.Add(quota.Retention+time.Hour))
	other := openEnv(t, s.URL())
	before(l, "ZRANGEBYSCORE", func() { allow(t, other, one("k", 1)) })
	sound(t, l)
	if n := len(entriesOf(t, l, "k")); n != 2 {
		t.Errorf("%d entries, want the oldest forgotten", n)
	}
}

// TestCheckWhileCharged: a check finds nothing if charges change old sums and add new ones before
// each page of sums that it reads.
func TestCheckWhileCharged(t *testing.T) {
	t.Parallel()
	s, l := clocked(t)
	charge := func(l *env, job int) {
		c := one("k", int64(1+job%2))
		c.Labels, c.Limits = quota.Labels{"job": fmt.Sprint(job)}, []quota.Limit{dayOf(10_000)}
		allow(t, l, c)
	}
	const jobs = 1000
	for job := range jobs {
		charge(l, job)
	}
	other, pages := openEnv(t, s.URL()), 0
	l.client.AddHook(once{"HSCAN", func() {
		pages++
		for n := range 10 {
			charge(other, (pages*37+n*101)%jobs)
			charge(other, jobs+10*pages+n)
		}
	}})
	sound(t, l)
	if pages < jobs/250+10 { // most days have no sums
		t.Errorf("%d pages were read", pages)
	}
}

// TestNothingScans: no command takes longer because the server has other keys.
func TestNothingScans(t *testing.T) {
	t.Parallel()
	l := openEnv(t, redistest.Start(t, redistest.Options{}).URL())
	allow(t, l, one("k", 1))
	setAside(t, l, reserveOf("default.r", 1, time.Hour))
	noError(t, only(l.BucketsOf(t.Context(), "k")))
	entriesOf(t, l, "k")
	sound(t, l)
	stats := l.client.Info(t.Context(), "commandstats").Val()
	if strings.Contains(stats, "cmdstat_scan") || strings.Contains(stats, "cmdstat_keys") {
		t.Error(stats)
	}
}

// TestNotesOfOneMoment: a page of notes may begin between notes with the same stamp.
func TestNotesOfOneMoment(t *testing.T) {
	t.Parallel()
	_, l := clocked(t)
	noError(t, only(l.Adjust(t.Context(), adjustOf("k", 300))))
	for range 300 {
		noError(t, only(l.Adjust(t.Context(), adjustOf("k", -1))))
	}
	notes, err := l.Entries(t.Context(), quota.Query{Credential: "k", Bucket: "default", Notes: true})
	noError(t, err)
	if len(notes) != 300 {
		t.Errorf("%d notes, want 300", len(notes))
	}
}

// TestCorrectedBetweenPages: an entry that a correction rewrites between two pages is listed once.
func TestCorrectedBetweenPages(t *testing.T) {
	t.Parallel()
	s, l := clocked(t)
	allow(t, l, one("k", 1))
	addEntries(t, l, 300, start)
	s.SetNow(t, start.Add(time.Second))
	other := openEnv(t, s.URL())
	reads := 0
	l.client.AddHook(once{"ZRANGEBYSCORE", func() {
		if reads++; reads == 2 {
			a := adjustOf("k", 1)
			a.Until = start.Add(200 * time.Microsecond)
			noError(t, only(other.Adjust(t.Context(), a)))
		}
	}})
	seen := make(map[string]int)
	for _, e := range entriesOf(t, l, "k") {
		if seen[e.ID]++; seen[e.ID] > 1 {
			t.Errorf("%s is listed twice", e.ID)
		}
	}
	if reads < 2 {
		t.Errorf("%d pages were read", reads)
	}
}
