package redisledger

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// chargeMany charges one unit n times, for eight regions.
func chargeMany(t *testing.T, l *Ledger, n int) {
	t.Helper()
	var all sync.WaitGroup
	for client := range 8 {
		all.Go(func() {
			for range n / 8 {
				c := charge("k", wide, 1)
				c.Labels = c.Labels.With(quota.Labels{quota.LabelRegion: "R" + strconv.Itoa(client)})
				if d, err := l.Charge(t.Context(), c); err != nil || !d.Allowed {
					t.Error(d, err)
				}
			}
		})
	}
	all.Wait()
}

// sumsEqualEntries makes sure of that, whatever has been done to the store.
func sumsEqualEntries(t *testing.T, l *Ledger, what string) {
	t.Helper()
	sums, err := l.Sums(t.Context(), quota.SumQuery{Credential: "k", Bucket: "default"})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	entries, err := l.Entries(t.Context(), quota.Query{Credential: "k", Bucket: "default"})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if got, want := fmt.Sprint(sums), fmt.Sprint(quota.AddUp(entries)); got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// A log from before there were sums, or whose sums somebody deleted, is added up by who first asks.
func TestSumsOfALogWithoutThem(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	chargeMany(t, l, 1600)
	state, sums := stateKey("k", "default"), sumsKey("k", "default")
	sumsEqualEntries(t, l, "at first")
	for what, lose := range map[string]func(){
		"before there were sums":   func() { l.client.HDel(t.Context(), state, summedField); l.client.Del(t.Context(), sums) },
		"sums of another log":      func() { l.client.HDel(t.Context(), state, summedField) },
		"sums deleted":             func() { l.client.Del(t.Context(), sums) },
		"how far they reach, lost": func() { l.client.HSet(t.Context(), state, summedField, "x") },
	} {
		lose()
		sumsEqualEntries(t, l, what)
		chargeMany(t, l, 80)
		sumsEqualEntries(t, l, what+", and charged again")
	}
}

// Sums that are deleted are added up anew, also when every entry was in them, or all but a few.
func TestSumsDeleted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	l.readNewest = 2
	chargeMany(t, l, 400)
	for _, more := range []int{0, 8} {
		for done := false; !done; {
			var err error
			if done, err = l.addUp(t.Context(), "k", "default"); err != nil {
				t.Fatal(err)
			}
		}
		chargeMany(t, l, more)
		must(t, l.client.Del(t.Context(), sumsKey("k", "default")))
		sumsEqualEntries(t, l, fmt.Sprintf("deleted, and %d charged before", more))
	}
}

// A process of a version that knows no sums may cancel what is in them: they begin anew.
func TestSumsAfterACancelThatKnewNone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	l.readNewest = 2
	chargeMany(t, l, 400)
	c := charge("k", wide, 7)
	d, err := l.Charge(t.Context(), c)
	if err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	chargeMany(t, l, 80)
	sumsEqualEntries(t, l, "before")
	state, sums := stateKey("k", "default"), sumsKey("k", "default")
	reach := l.client.HGet(t.Context(), state, summedField).Val()
	kept := l.client.ZRangeWithScores(t.Context(), sums, 0, -1).Val()
	if err := l.Cancel(t.Context(), c, d); err != nil {
		t.Fatal(err)
	}
	sumsEqualEntries(t, l, "cancelled")
	must(t, l.client.HSet(t.Context(), state, summedField, reach))
	must(t, l.client.Del(t.Context(), sums))
	for _, z := range kept {
		must(t, l.client.ZAdd(t.Context(), sums, z))
	}
	sumsEqualEntries(t, l, "cancelled without the sums")
}

// Charges add up as they go, so that a reader who comes late has little left to do.
func TestChargesAddUp(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Clock: true})
	l := open(t, s.URL())
	for i := range 2 * addUpEvery {
		s.SetNow(t, time.Date(2026, 6, 1, 12, 0, 0, i*1000, time.UTC))
		if d, err := l.Charge(t.Context(), charge("k", wide, 1)); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	reach := parseSummed(l.client.HGet(t.Context(), stateKey("k", "default"), summedField).Val())
	if reach.total != addUpEvery+1 {
		t.Errorf("%d units of %d are in the sums, want %d", reach.total, 2*addUpEvery, addUpEvery+1)
	}
	if ttl := l.client.PTTL(t.Context(), sumsKey("k", "default")).Val(); ttl < quota.Retention {
		t.Errorf("the sums lapse in %s", ttl)
	}
	sumsEqualEntries(t, l, "added up")
}

// Reading sums takes as many commands, and as many bytes, for a long log as for a short one.
func TestSumsOfALongLog(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Clock: true})
	s.SetNow(t, time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	l := open(t, s.URL())
	read := func() (commands, bytes int64) {
		before := stats(t, l)
		if _, err := l.Sums(t.Context(), quota.SumQuery{Credential: "k", Bucket: "default"}); err != nil {
			t.Fatal(err)
		}
		after := stats(t, l)
		return after[0] - before[0], after[1] - before[1]
	}
	chargeMany(t, l, 800)
	read() // adds up
	commands, bytes := read()
	chargeMany(t, l, 8000)
	read()
	if c, b := read(); c != commands || b > bytes*11/10 {
		t.Errorf("%d commands and %d bytes for 8,800 entries, %d and %d for 800", c, b, commands, bytes)
	}
	var total int64
	for e, err := range quota.All(t.Context(), l, quota.Query{Credential: "k", Bucket: "default"}) {
		if total++; err != nil || e.Total != total {
			t.Fatalf("entry %d in pages: %+v, %v", total, e, err)
		}
	}
	if total != 8800 {
		t.Errorf("%d entries in pages, want 8,800", total)
	}
}

// stats are the commands that the server has run and the bytes that it has sent.
func stats(t *testing.T, l *Ledger) (counts [2]int64) {
	t.Helper()
	info := parseInfo(l.client.Info(t.Context(), "stats").Val())
	for i, name := range []string{"total_commands_processed", "total_net_output_bytes"} {
		n, err := strconv.ParseInt(strings.TrimSpace(info[name]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		counts[i] = n
	}
	return counts
}

// What cannot be read is an error, and no sum without it.
func TestSumsOfADamagedLog(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	l.readNewest = 2
	chargeMany(t, l, 400)
	log := logKey("k", "default")
	z := l.client.ZRangeWithScores(t.Context(), log, 7, 7).Val()[0]
	must(t, l.client.ZRem(t.Context(), log, z.Member))
	must(t, l.client.ZAdd(t.Context(), log, redis.Z{Score: z.Score, Member: "rubbish"}))
	l.client.HDel(t.Context(), stateKey("k", "default"), summedField)
	sums, err := l.Sums(t.Context(), quota.SumQuery{Credential: "k", Bucket: "default"})
	if err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("%v, %v", sums, err)
	}
}
