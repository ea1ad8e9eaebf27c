package redisledger

import (
	"testing"
	"testing/synctest"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// The labels last as long as every log that names them, whatever it was that made the log last
// longer.
func TestLabelsOutliveTheLog(t *testing.T) {
	start := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	days := func(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }
	far := quota.Reserve{
		Credential: "k",
		ID:         "default.far",
		Units:      5,
		TTL:        days(30),
		Limits:     hundred,
	}
	reserve := func(t *testing.T, l *Ledger) {
		if d, err := l.Reserve(t.Context(), far); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	charge := func(t *testing.T, l *Ledger) {
		if d, err := l.Charge(t.Context(), one("k", 1)); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	for name, do := range map[string]func(*testing.T, *Ledger){
		"reserve":       func(t *testing.T, l *Ledger) { charge(t, l); reserve(t, l) },
		"reserve first": func(t *testing.T, l *Ledger) { reserve(t, l); charge(t, l) },
		"longer window": func(t *testing.T, l *Ledger) {
			charge(t, l)
			c := one("k", 1)
			c.Limits = []quota.Limit{{Bucket: "default", Units: 100, Window: quota.Sliding(days(30))}}
			if d, err := l.Charge(t.Context(), c); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		},
		"another bucket first": func(t *testing.T, l *Ledger) {
			reserve(t, l) // default lasts long, and has no labels yet
			c := one("k", 1)
			c.Costs, c.Limits = []quota.Cost{{Bucket: "other", Units: 1}}, []quota.Limit{{Bucket: "other", Units: 9, Window: quota.Sliding(time.Hour)}}
			if d, err := l.Charge(t.Context(), c); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			charge(t, l) // the labels are known already
		},
		"suspend": func(t *testing.T, l *Ledger) {
			charge(t, l)
			if err := l.Suspend(t.Context(), "k", "default", start.Add(days(30))); err != nil {
				t.Fatal(err)
			}
		},
		"commit": func(t *testing.T, l *Ledger) {
			reserve(t, l)
			r := far
			r.ID, r.TTL = "default.near", time.Hour
			if _, err := l.Reserve(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			c := quota.Commit{Credential: "k", Reservation: r.ID, ID: "c", Units: 1, Limits: hundred, Labels: quota.Labels{"method": "m"}}
			if _, err := l.Commit(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		},
		"cancel": func(t *testing.T, l *Ledger) {
			charge(t, l)
			c := one("k", 1)
			d, err := l.Charge(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			reserve(t, l)
			if err := l.Cancel(t.Context(), c, d); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, redistest.Options{Clock: true})
			s.SetNow(t, start)
			l := open(t, s.URL())
			do(t, l)
			for _, day := range []int{5, 9, 12, 29} {
				s.SetNow(t, start.Add(days(day)))
				entries, err := l.Entries(
					t.Context(),
					quota.Query{Credential: "k", Bucket: "default"},
				)
				if err != nil || len(entries) == 0 {
					t.Fatalf("day %d: %d entries, %v", day, len(entries), err)
				}
				for _, e := range entries {
					if e.Labels["method"] != "m" {
						t.Fatalf("day %d: entry %s has the labels %v", day, e.ID, e.Labels)
					}
				}
			}
		})
	}
}

// Every key of a credential lapses in the end, whichever came first.
func TestKeysLapse(t *testing.T) {
	start := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	s := redistest.Start(t, redistest.Options{Clock: true})
	s.SetNow(t, start)
	l := open(t, s.URL())
	if d, err := l.Reserve(t.Context(), quota.Reserve{Credential: "k", ID: "default.r", Units: 5, TTL: time.Hour, Limits: hundred}); err != nil ||
		!d.Allowed {
		t.Fatal(d, err)
	}
	allowedOf(t, l, 3)
	s.SetNow(t, start.AddDate(1, 0, 0))
	if left := l.client.Keys(t.Context(), "*").Val(); len(left) > 0 {
		t.Errorf("a year later there are %q", left)
	}
}

// What is set aside, and what is closed, stays so for as long as was asked, however idle the bucket
// is.
func TestLongHoldsAndSuspensions(t *testing.T) {
	start := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	s := redistest.Start(t, redistest.Options{Clock: true})
	s.SetNow(t, start)
	l := open(t, s.URL())
	if d, err := l.Reserve(t.Context(), quota.Reserve{Credential: "k", ID: "default.r", Units: 60, TTL: 20 * day, Limits: hundred}); err != nil ||
		!d.Allowed {
		t.Fatal(d, err)
	}
	if err := l.Suspend(t.Context(), "closed", "default", start.Add(20*day)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after      time.Duration
		held, shut bool
	}{{7 * day, true, true}, {20*day - 1000, true, true}, {20 * day, false, false}} {
		s.SetNow(t, start.Add(c.after))
		charge := one("k", 41)
		charge.DryRun = true
		if d, err := l.Charge(t.Context(), charge); err != nil || d.Allowed == c.held {
			t.Errorf("after %v, beside 60 held: %+v, %v", c.after, d, err)
		}
		charge.Credential = "closed"
		if d, err := l.Charge(t.Context(), charge); err != nil || d.Allowed == c.shut {
			t.Errorf("after %v, on a closed bucket: %+v, %v", c.after, d, err)
		}
	}
}

// A cancellation leaves the log its time to live, also when it was the only entry that stays as it
// was.
func TestCancelKeepsTheTimeToLive(t *testing.T) {
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	c := one("k", 1)
	d, err := l.Charge(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	allowedOf(t, l, 3)
	if err := l.Cancel(t.Context(), c, d); err != nil {
		t.Fatal(err)
	}
	if ttl := l.client.TTL(t.Context(), logKey("k", "default")).Val(); ttl < quota.Retention {
		t.Errorf("the log lapses in %v", ttl)
	}
}

// A line of labels is told again a minute after, should the server have lost it, and for other
// buckets at once.
func TestTellsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told told
		line := label{line: "method=m", run: "r"}
		told.note("k default", told.code("k default", line))
		for _, c := range []struct {
			after    time.Duration
			audience string
			again    bool
		}{
			{0, "k default", false},
			{0, "k search_list", true},
			{tellAgain - time.Second, "k default", false},
			{time.Second, "k default", true},
		} {
			time.Sleep(c.after)
			if got := told.code(c.audience, line); (got.line != "") != c.again ||
				got.code != codeOf(line.line) ||
				got.run != "r" {
				t.Errorf("%s, %v later: %+v", c.audience, c.after, got)
			}
		}
	})
}
