package redisledger

import (
	"testing"
	"testing/synctest"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

var start = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

func days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

// The labels last as long as every log that names them, whatever it was that made the log last
// longer.
func TestLabelsOutliveTheLog(t *testing.T) {
	far := reserveOf("default.far", 5, days(30))
	charge := func(t *testing.T, l *Ledger) { allow(t, l, one("k", 1)) }
	for name, do := range map[string]func(*testing.T, *Ledger){
		"reserve":       func(t *testing.T, l *Ledger) { charge(t, l); setAside(t, l, far) },
		"reserve first": func(t *testing.T, l *Ledger) { setAside(t, l, far); charge(t, l) },
		"longer window": func(t *testing.T, l *Ledger) {
			charge(t, l)
			c := one("k", 1)
			c.Limits = []quota.Limit{day(100)}
			c.Limits[0].Window.Length = days(30)
			allow(t, l, c)
		},
		"another bucket first": func(t *testing.T, l *Ledger) {
			setAside(t, l, far) // default lasts long, and has no labels yet
			c := one("k", 1)
			c.Costs = []quota.Cost{{Bucket: "other", Units: 1}}
			c.Limits = []quota.Limit{{Bucket: "other", Units: 9, Window: quota.Sliding(time.Hour)}}
			allow(t, l, c)
			charge(t, l) // the labels are known already
		},
		"suspend": func(t *testing.T, l *Ledger) {
			charge(t, l)
			if err := l.Suspend(t.Context(), quota.Suspension{Credential: "k", Bucket: "default", Until: start.Add(days(30))}); err != nil {
				t.Fatal(err)
			}
		},
		"settle": func(t *testing.T, l *Ledger) {
			setAside(t, l, far)
			setAside(t, l, reserveOf("default.near", 5, time.Hour))
			s := settleOf("default.near", 1)
			s.Labels = quota.Labels{"method": "m"}
			if _, err := l.Settle(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		},
		"adjust": func(t *testing.T, l *Ledger) {
			setAside(t, l, far)
			a := adjustOf("k", 2)
			a.Labels = quota.Labels{"method": "m"}
			if _, err := l.Adjust(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		},
		"cancel": func(t *testing.T, l *Ledger) {
			charge(t, l)
			c := one("k", 1)
			d := allow(t, l, c)
			setAside(t, l, far)
			if err := l.Cancel(t.Context(), c, d); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, l := clocked(t)
			do(t, l)
			for _, day := range []int{5, 9, 12, 29} {
				s.SetNow(t, start.Add(days(day)))
				entries := entriesOf(t, l, "k")
				if len(entries) == 0 {
					t.Fatalf("day %d: no entries", day)
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

// clocked is a ledger on a server whose clock the test sets, at start to begin with.
func clocked(t *testing.T) (*redistest.Server, *Ledger) {
	t.Helper()
	s := redistest.Start(t, redistest.Options{Clock: true})
	s.SetNow(t, start)
	return s, open(t, s.URL())
}

// Every key of a credential lapses in the end, whichever came first.
func TestKeysLapse(t *testing.T) {
	s, l := clocked(t)
	setAside(t, l, reserveOf("default.r", 5, time.Hour))
	allowedOf(t, l, 3)
	s.SetNow(t, start.AddDate(1, 0, 0))
	if left := l.client.Keys(t.Context(), "*").Val(); len(left) > 0 {
		t.Errorf("a year later there are %q", left)
	}
}

// What is set aside, and what is closed, stays so for as long as was asked, however idle the bucket
// is.
func TestLongHoldsAndSuspensions(t *testing.T) {
	s, l := clocked(t)
	setAside(t, l, reserveOf("default.r", 60, days(20)))
	if err := l.Suspend(t.Context(), quota.Suspension{Credential: "closed", Bucket: "default", Until: start.Add(days(20))}); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{days(7), days(20) - time.Microsecond, days(20)} {
		s.SetNow(t, start.Add(after))
		still := after < days(20)
		for _, credential := range []string{"k", "closed"} {
			c := one(credential, 41)
			c.DryRun = true
			if d, err := l.Charge(t.Context(), c); err != nil || d.Allowed == still {
				t.Errorf("after %v, of %s: %+v, %v", after, credential, d, err)
			}
		}
	}
}

// A cancellation leaves the log its time to live, also when it was the only entry that stays as it
// was, or while the state is lost.
func TestCancelKeepsTheTimeToLive(t *testing.T) {
	for _, test := range []struct {
		before, after int
		lost          bool
	}{{0, 3, false}, {60, 0, true}} {
		l := open(t, redistest.Start(t, redistest.Options{}).URL())
		allowedOf(t, l, test.before)
		c := one("k", 1)
		d := allow(t, l, c)
		allowedOf(t, l, test.after)
		if test.lost {
			must(t, l.client.Del(t.Context(), stateOfK))
		}
		if err := l.Cancel(t.Context(), c, d); err != nil {
			t.Fatal(err)
		}
		lasts(t, l, logOfK)
		if n, left := allowedOf(t, l, 100), 100-test.before-test.after; n != left {
			t.Errorf("allowed %d more of the %d left", n, left)
		}
	}
}

// A line of labels is sent again a minute after, should the server have lost it, and for other
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
			got := told.code(c.audience, line)
			if (got.line != "") != c.again || got.code != codeOf(line.line) || got.run != "r" {
				t.Errorf("%s, %v later: %+v", c.audience, c.after, got)
			}
		}
	})
}
