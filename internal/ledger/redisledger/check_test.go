package redisledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// The check reads and mends through every kind of client.
func TestCheckByEveryClient(t *testing.T) {
	t.Parallel()
	for kind, start := range broken(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url, _ := start(t)
			l := open(t, url)
			ninety(t, l)
			names, err := l.BucketsOf(t.Context(), "k")
			if err != nil || fmt.Sprint(names) != "[{default 90 false}]" {
				t.Errorf("%v, %v", names, err)
			}
			must(t, l.client.ZRemRangeByRank(t.Context(), logOfK, -1, -1))
			for _, repair := range []bool{false, true} {
				found, err := l.CheckBucket(t.Context(), "k", "default", repair)
				if err != nil || len(found) != 1 || !found[0].Mends {
					t.Errorf("repair %v: %+v, %v", repair, found, err)
				}
			}
			allow(t, l, one("k", 20)) // beside 80 of 100
		})
	}
}

// Entries of one moment are in the order of their text: a repair moves them apart, or their totals
// would never rise.
func TestEntryThatIsThereTwice(t *testing.T) {
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	ninety(t, l)
	last := l.client.ZRangeWithScores(t.Context(), logOfK, -1, -1).Val()[0]
	text := strings.Replace(written(t, last), ":10:", ":10:x", 1)
	again := redis.Z{Score: last.Score, Member: text}
	must(t, l.client.ZAdd(t.Context(), logOfK, again))
	for _, want := range []bool{true, false} {
		found, err := l.CheckBucket(t.Context(), "k", "default", true)
		if err != nil || len(found) > 0 != want {
			t.Errorf("%+v, %v", found, err)
		}
	}
	if d, err := l.Charge(t.Context(), one("k", 1)); err != nil || d.Allowed {
		t.Errorf("1 beside 100 of 100: %+v, %v", d, err)
	}
}

// A reservation that a script does not take is one that a check finds.
func TestReservationBeyondExact(t *testing.T) {
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	for _, text := range []string{
		"9007199254740992:1900000000000000:0:5:1:0:", "5:9007199254740992:0:5:1:0:",
		"5:1900000000000000:9007199254740992:5:1:0:",
	} {
		ninety(t, l)
		must(t, l.client.HSet(t.Context(), stateOfK, "r:x", text))
		found, err := l.CheckBucket(t.Context(), "k", "default", true)
		if err != nil || !says(fmt.Errorf("%+v", found), "default.x", "cannot be read") {
			t.Errorf("%s: %+v, %v", text, found, err)
		}
		allow(t, l, one("k", 10)) // beside 90 of 100
		must(t, l.client.FlushAll(t.Context()))
	}
}

// A key of another kind denies, and a check says which one it is.
func TestKeyOfAnotherKind(t *testing.T) {
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	for _, key := range []string{stateOfK, logOfK, labelsKey("k")} {
		ninety(t, l)
		must(t, l.client.Set(t.Context(), key, "mine", 0))
		c := one("k", 1)
		c.Labels = quota.Labels{"for": key}
		if d, err := l.Charge(t.Context(), c); d.Allowed || !says(err, "quotactl ledger check") {
			t.Errorf("%s: charged: %+v, %v", key, d, err)
		}
		for _, repair := range []bool{false, true} {
			found, err := l.CheckBucket(t.Context(), "k", "default", repair)
			if err != nil || len(found) != 1 || found[0].Mends || found[0].Bucket != "default" ||
				!strings.Contains(found[0].What, key+" is not a") {
				t.Errorf("%s: %+v, %v", key, found, err)
			}
		}
		must(t, l.client.FlushAll(t.Context()))
	}
}

// What needs more entries written anew than one step may write is left, with a reason.
func TestTooMuchToMend(t *testing.T) {
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	const n = 2*maxMended + 10
	pipe := l.client.Pipeline()
	for i := range n {
		total := i + 1
		if i > n/2 {
			total++ // an entry of one unit is missing in the middle
		}
		member := fmt.Sprintf("%d:1:e%d:", total, i)
		pipe.ZAdd(t.Context(), logOfK, redis.Z{Score: 1.7e15 + float64(i), Member: member})
		if i%1000 != 999 && i != n-1 { // few at once: a write has its time limit
			continue
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, err := l.CheckBucket(t.Context(), "k", "default", true)
	if !says(err, "a repair would write") {
		t.Errorf("got %v", err)
	}
	if entries, err := l.client.ZCard(t.Context(), logOfK).Result(); err != nil || entries != n {
		t.Errorf("%d entries, %v", entries, err)
	}
}
