package redisledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

var sumsOfK = sumsKey("k", "default")

// chargeMany charges one unit n times, for eight regions.
func chargeMany(t *testing.T, l *Ledger, n int) {
	t.Helper()
	var all sync.WaitGroup
	for client := range 8 {
		all.Go(func() {
			for range n / 8 {
				c := charge("k", wide, 1)
				c.Labels = c.Labels.With(quota.Labels{"region": "R" + strconv.Itoa(client)})
				allow(t, l, c)
			}
		})
	}
	all.Wait()
}

// sumsEqualEntries makes sure of that, whatever has been done to the store.
func sumsEqualEntries(t *testing.T, l *Ledger, what string) {
	t.Helper()
	sums, err := l.Sums(t.Context(), sumsQuery("k"))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if got, want := fmt.Sprint(sums), fmt.Sprint(quota.AddUp(entriesOf(t, l, "k"))); got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// summedLedger has 400 units in its sums, all but a few.
func summedLedger(t *testing.T) *Ledger {
	t.Helper()
	t.Parallel()
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	l.readNewest = 2
	chargeMany(t, l, 400)
	return l
}

// A log from before there were sums, or whose sums somebody deleted, is added up by who first asks.
func TestSumsOfALogWithoutThem(t *testing.T) {
	l := summedLedger(t)
	sumsEqualEntries(t, l, "at first")
	reach := func() { l.client.HDel(t.Context(), stateOfK, summedField) }
	sums := func() { l.client.Del(t.Context(), sumsOfK) }
	for what, lose := range map[string]func(){
		"before there were sums": func() { reach(); sums() },
		"sums of another log":    reach,
		"sums deleted":           sums,
		"their reach damaged":    func() { l.client.HSet(t.Context(), stateOfK, summedField, "x") },
	} {
		lose()
		sumsEqualEntries(t, l, what)
		chargeMany(t, l, 80)
		sumsEqualEntries(t, l, what+", and charged again")
	}
}

// Sums that are deleted are added up again, also when every entry was in them, or all but a few.
func TestSumsDeleted(t *testing.T) {
	l := summedLedger(t)
	for _, more := range []int{0, 8} {
		for done := false; !done; {
			var err error
			if done, err = l.addUp(t.Context(), "k", "default"); err != nil {
				t.Fatal(err)
			}
		}
		chargeMany(t, l, more)
		must(t, l.client.Del(t.Context(), sumsOfK))
		found, err := l.CheckBucket(t.Context(), "k", "default", false)
		if err != nil || len(found) > 0 { // the log may outlive them, and they are added up again
			t.Errorf("a check finds %+v, %v", found, err)
		}
		sumsEqualEntries(t, l, fmt.Sprintf("deleted, and %d charged before", more))
	}
}

// A process of a version that knows no sums may cancel what is in them: they are added up again.
func TestSumsAfterACancelThatKnewNone(t *testing.T) {
	l := summedLedger(t)
	c := charge("k", wide, 7)
	d := allow(t, l, c)
	chargeMany(t, l, 80)
	sumsEqualEntries(t, l, "before")
	reach := l.client.HGet(t.Context(), stateOfK, summedField).Val()
	kept := l.client.ZRangeWithScores(t.Context(), sumsOfK, 0, -1).Val()
	if err := l.Cancel(t.Context(), c, d); err != nil {
		t.Fatal(err)
	}
	now := parseSummed(l.client.HGet(t.Context(), stateOfK, summedField).Val())
	if was := parseSummed(reach); now.upto != was.upto || now.total != was.total-7 {
		t.Errorf("the sums reach to %d and %d units, and did to %d and %d", now.upto, now.total,
			was.upto, was.total)
	}
	sumsEqualEntries(t, l, "cancelled")
	must(t, l.client.HSet(t.Context(), stateOfK, summedField, reach))
	must(t, l.client.Del(t.Context(), sumsOfK))
	must(t, l.client.ZAdd(t.Context(), sumsOfK, kept...))
	sumsEqualEntries(t, l, "cancelled without the sums")
}

// Charges add up as they go, so that a reader who comes late has little left to do.
func TestChargesAddUp(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Clock: true})
	l := open(t, s.URL())
	for i := range 2 * addUpEvery {
		s.SetNow(t, time.Date(2026, 6, 1, 12, 0, 0, i*1000, time.UTC))
		allow(t, l, charge("k", wide, 1))
	}
	reach := parseSummed(l.client.HGet(t.Context(), stateOfK, summedField).Val())
	if reach.total != addUpEvery+1 {
		t.Errorf("%d units of %d are in the sums, want %d", reach.total, 2*addUpEvery, addUpEvery+1)
	}
	lasts(t, l, sumsOfK)
	sumsEqualEntries(t, l, "added up")
}

// The sums of entries that are gone go, too.
func TestSumsOfTrimmedEntriesGo(t *testing.T) {
	t.Parallel()
	s, l := clocked(t)
	for _, after := range []time.Duration{0, quota.Retention + 4*time.Hour} {
		s.SetNow(t, start.Add(after))
		allow(t, l, one("k", 1))
		if _, err := l.addUp(t.Context(), "k", "default"); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.client.ZCard(t.Context(), sumsOfK).Val(); n != 1 {
		t.Errorf("there are sums of %d periods, want those of the newest entry alone", n)
	}
}

// Reading sums takes as many commands, and as many bytes, for a long log as for a short one.
func TestSumsOfALongLog(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Clock: true})
	s.SetNow(t, time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	l := open(t, s.URL())
	read := func() (commands, bytes int64) {
		before := stats(t, l)
		if _, err := l.Sums(t.Context(), sumsQuery("k")); err != nil {
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
		t.Errorf("%d commands, %d bytes for 8,800 entries, %d, %d for 800", c, b, commands, bytes)
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
	l := summedLedger(t)
	replaced(7, "rubbish")(t, l.client)
	must(t, l.client.HDel(t.Context(), stateOfK, summedField))
	sums, err := l.Sums(t.Context(), sumsQuery("k"))
	if err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("%v, %v", sums, err)
	}
}

// sums reads who spent what from a short log and a long one, and adds the entries of the long one
// up, as for a ledger that is older than its sums.
func (f *figures) sums() {
	read := func(credential string) time.Duration {
		var took []float64
		for range 20 {
			start := time.Now()
			if _, err := f.l.Sums(context.Background(), sumsQuery(credential)); err != nil {
				panic(err)
			}
			took = append(took, float64(time.Since(start)))
		}
		return time.Duration(median(took))
	}
	start := time.Now()
	f.l.addUp(context.Background(), "logged10000", "default")
	for done := false; !done; {
		done, _ = f.l.addUp(context.Background(), "logged1000000", "default")
	}
	fmt.Fprintf(f.out, "adding up 1,000,000 entries, once\t%.2f s\n", time.Since(start).Seconds())
	short, long := read("logged10000"), read("logged1000000")
	fmt.Fprintf(f.out, "who spent what, 1,000,000 logged, against 10,000\t%.1f ms\t%.1f ×\n",
		long.Seconds()*1e3, float64(long)/float64(short))
}

func sumsQuery(credential string) quota.SumQuery {
	return quota.SumQuery{Credential: credential, Bucket: "default"}
}
