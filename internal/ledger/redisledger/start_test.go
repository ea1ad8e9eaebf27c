package redisledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// searches is how many commands have looked into a log for a time since the last call.
func searches(t *testing.T, c redis.UniversalClient) (n int) {
	t.Helper()
	info := parseInfo(c.Info(t.Context(), "commandstats").Val())
	_, _ = fmt.Sscanf(info["cmdstat_zrangebyscore"], "calls=%d", &n)
	must(t, c.ConfigResetStat(t.Context()))
	return n
}

// A log is searched for where a window starts when an entry has left it that nobody has seen leave
// before: every other one that leaves.
func TestStartsAreKnown(t *testing.T) {
	s, l := clocked(t)
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	limits := []quota.Limit{day(1000), day(1000), day(100)}
	limits[1].Window = quota.Window{Calendar: "day", Zone: zone}
	limits[2].Window = quota.Sliding(time.Minute)
	begin := start.Truncate(addUpEvery * time.Microsecond).Add(time.Microsecond)
	const step = 40_000 * addUpEvery * time.Microsecond // no sums are due at any of them
	at := func(n int) quota.Decision {
		s.SetNow(t, begin.Add(time.Duration(n)*step))
		c := one("k", 10)
		c.Limits = limits
		return allow(t, l, c)
	}
	at(0)
	searches(t, l.client)
	// From the sixth on, one leaves the minute. Before that, all windows started in an empty log, so
	// what is found then of the minute takes the place of what was known of the days, too.
	for i, want := range []int{0, 0, 0, 0, 0, 1, 1, 1, 0, 1} {
		d := at(i + 1)
		if got := searches(t, l.client); got != want {
			t.Errorf("charge %d: %d searches, want %d", i, got, want)
		}
		if left := 100 - 10*min(i+2, 6); d.Remaining["default"] != int64(left) {
			t.Errorf("charge %d leaves %v, want %d", i, d.Remaining, left)
		}
	}
	sound(t, l, "k")
}

// Whatever changes older entries forgets where windows start.
func TestStartsAreForgotten(t *testing.T) {
	for name, change := range map[string]func(*Ledger, quota.Charge, quota.Decision) error{
		"cancel": func(l *Ledger, c quota.Charge, d quota.Decision) error {
			return l.Cancel(t.Context(), c, d)
		},
		"adjust": func(l *Ledger, c quota.Charge, d quota.Decision) error {
			a := adjustOf("k", -10)
			a.After, a.Until = d.At.Add(-time.Microsecond), d.At
			_, err := l.Adjust(t.Context(), a)
			return err
		},
		"repair": func(l *Ledger, c quota.Charge, d quota.Decision) error {
			by := fmt.Sprint(d.At.UnixMicro())
			must(t, l.client.ZRemRangeByScore(t.Context(), logOfK, by, by))
			_, err := l.CheckBucket(t.Context(), "k", "default", true)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := clocked(t)
			var c quota.Charge
			var d quota.Decision
			for i := range 9 {
				s.SetNow(t, start.Add(time.Duration(i)*time.Second))
				if charge := one("k", 10); i == 0 {
					c, d = charge, allow(t, l, charge)
				} else {
					allow(t, l, charge)
				}
			}
			if err := change(l, c, d); err != nil {
				t.Fatal(err)
			}
			sound(t, l, "k")
			if d := allow(t, l, one("k", 20)); d.Remaining["default"] != 0 {
				t.Errorf("80 are used and 20 charged, and %v left", d.Remaining)
			}
		})
	}
}

// An entry at the start of a window that was deleted by hand counts until a repair; and a check
// finds other numbers that are wrong there, which never make room beyond the limit.
func TestStartsDamaged(t *testing.T) {
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	for name, do := range map[string]byHand{
		"first entry deleted": func(t *testing.T, c redis.UniversalClient) {
			must(t, c.ZRemRangeByRank(t.Context(), logOfK, 0, 0))
		},
		"total before it":    withState(9, 5),
		"total after it":     withState(11, 5),
		"stamp of the first": withState(10, float64(time.Now().Add(time.Hour).UnixMicro())),
		"no number":          withState(9, inf),
	} {
		t.Run(name, func(t *testing.T) {
			forgetAll(t, l)
			ninety(t, l)
			forgetStarts(t, l.client, "k")
			allow(t, l, one("k", 5)) // finds the first two entries
			do(t, l.client)
			if d, err := l.Charge(t.Context(), one("k", 20)); err != nil || d.Allowed {
				t.Errorf("%+v, %v", d, err)
			}
			mended(t, l)
		})
	}
	for _, bytes := range []int{1, lenStart - 1, lenStart + 1} {
		forgetAll(t, l)
		ninety(t, l)
		text := l.client.HGet(t.Context(), stateOfK, stateField).Val()
		stateText(text+strings.Repeat("x", bytes))(t, l.client)
		if _, err := l.Charge(t.Context(), one("k", 1)); !says(err, fmt.Sprint(len(text)+bytes)) {
			t.Errorf("%d bytes too many: %v", bytes, err)
		}
		mended(t, l)
	}
}
