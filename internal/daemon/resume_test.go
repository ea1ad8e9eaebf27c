package daemon_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// four returns lanes of one region whose charts have four pages.
func four(t *testing.T, spec string) []share.Lane {
	t.Helper()
	all := lanes(t, spec, "UTC", "JP", 0)
	all[0].Pages = 4
	return all
}

// narrow adds a limit with a short window.
func (w *env) narrow(units int64, window time.Duration) {
	w.limits = append(w.limits, quota.Limit{Bucket: quota.DefaultBucket, Units: units,
		Window: quota.Sliding(window)})
}

// expectAsked compares the requests since its last call with "19:00:00 JP 1, 19:00:00 JP 2".
func (w *env) expectAsked(want string) {
	w.Helper()
	w.expect(strings.Join(w.taken(), ", "), want, "requests")
}

// halves returns the incomplete charts of JP, newest first, with their pages:
// "trending/JP/2026-06-01T19:00:00Z 3".
func (w *env) halves() string {
	w.Helper()
	charts, err := w.look.catalog.Charts(context.Background(), "JP", 0)
	must(w, err)
	var halves []string
	for _, c := range charts {
		if c.CompletedAt.IsZero() {
			halves = append(halves, fmt.Sprint(c.Run, " ", c.Pages))
		}
	}
	return strings.Join(halves, ", ")
}

// TestResume: within a quarter of an hour of its first page, the next tick resumes a chart that
// was cut short; after that it begins a new one. The chart belongs to the tick that completes it,
// and neither tick runs again.
func TestResume(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, spec  string
		units       int64
		window      time.Duration
		first, next string // requests of the first tick, and of the others
		runs        string // runs with a complete chart
		halves      string
	}{
		{"five minutes", "0,5 19 * * *", 3, 4 * time.Minute,
			"19:00:00 JP 1, 19:00:00 JP 2, 19:00:00 JP 3", "19:05:00 JP 4", "19:05:00", ""},
		{"a quarter of an hour", "0,15 19 * * *", 3, 4 * time.Minute,
			"19:00:00 JP 1, 19:00:00 JP 2, 19:00:00 JP 3", "19:15:00 JP 4", "19:15:00", ""},
		{"a minute more", "0,16 19 * * *", 3, 10 * time.Minute,
			"19:00:00 JP 1, 19:00:00 JP 2, 19:00:00 JP 3",
			"19:16:00 JP 1, 19:16:00 JP 2, 19:16:00 JP 3", "",
			"trending/JP/2026-06-01T19:16:00Z 3, trending/JP/2026-06-01T19:00:00Z 3"},
		{"from tick to tick", "0,5,10,15 19 * * *", 1, 4 * time.Minute,
			"19:00:00 JP 1", "19:05:00 JP 2, 19:10:00 JP 3, 19:15:00 JP 4", "19:15:00", ""},
		{"but not for ever", "0,6,12,18 19 * * *", 1, 4 * time.Minute,
			"19:00:00 JP 1", "19:06:00 JP 2, 19:12:00 JP 3, 19:18:00 JP 1", "",
			"trending/JP/2026-06-01T19:18:00Z 1, trending/JP/2026-06-01T19:12:00Z 3"},
		{"past one that gets nothing", "0,5,10 19 * * *", 3, 9 * time.Minute,
			"19:00:00 JP 1, 19:00:00 JP 2, 19:00:00 JP 3", "19:10:00 JP 4", "19:10:00", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			atNoon(t, func(w *env) {
				w.narrow(c.units, c.window)
				all := four(t, c.spec)
				p := w.open(all...).start()
				time.Sleep(2 * time.Second)
				w.expectAsked(c.first)
				p.stopAfter(20 * time.Minute)
				w.expectAsked(c.next)
				w.expectRan("JP", c.runs)
				w.expect(w.halves(), c.halves)
				for tick := range all[0].Ticks(noon.Add(-time.Second), noon.Add(20*time.Minute)) {
					w.expect(w.claim(tick.ID(), time.Minute), quota.ClaimDone, tick.ID())
				}
			})
		})
	}
}

// TestResumedIsNotRunAgain: a daemon that starts at that moment finds that the ticks whose chart a
// later tick resumed are done.
func TestResumedIsNotRunAgain(t *testing.T) {
	atNoon(t, func(w *env) {
		w.narrow(2, 100*time.Second)
		all := four(t, "*/2 19 * * *")
		p := w.open(all...)
		p.start().stopAfter(2*time.Minute + 30*time.Second)
		w.expectAsked("19:00:00 JP 1, 19:00:00 JP 2, 19:02:00 JP 3, 19:02:00 JP 4")
		again := w.restart(all...)
		again.stopAfter(80 * time.Second)
		w.expectAsked("")
		w.expectRan("JP", "19:02:00")
	})
}

// TestLostKeepsItsChart: a tick that was lost in a crash still runs with the pages it has. A
// later tick begins its own chart, and does not change the other's mark.
func TestLostKeepsItsChart(t *testing.T) {
	atNoon(t, func(w *env) {
		lost := "trending/JP/2026-06-01T19:00:00Z"
		all := four(t, "*/5 19 * * *")
		a := w.open(all...)
		w.set(func(p *proc, r *http.Request) {
			if p == a && r.URL.Query().Has("pageToken") {
				p.crash() // with the first page stored
			}
		})
		a.start().stopAfter(11 * time.Minute) // beyond what findMissed checks
		w.open(all...).start().stopAfter(5 * time.Minute)
		w.expectAsked("19:00:00 JP 1, 19:15:00 JP 1, 19:15:00 JP 2, 19:15:00 JP 3, 19:15:00 JP 4")
		w.expect(w.halves(), lost+" 1")
		w.expect(w.claim(lost, time.Hour), quota.ClaimHeld, "of the lost tick")
	})
}

// TestOthersKeepTheirCharts: a tick resumes only charts of earlier ticks of its lane, even if all
// ticks are done.
func TestOthersKeepTheirCharts(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]string{
		"a sweep by hand": "6ag00hkqk7ex2k", "another job": "other/JP/2026-06-01T18:55:00Z",
		"a later tick": "trending/JP/2026-06-01T19:10:00Z",
		"no tick":      "trending/JP/yesterday",
	} {
		t.Run(name, func(t *testing.T) {
			at(t, noon.Add(-time.Minute), 10_000, func(w *env) {
				page := catalog.Page{Next: "CAMQAA", FetchedAt: time.Now()}
				if _, _, err := w.look.catalog.Begin(w.Context(), "JP",
					run, 0, page); err != nil {
					t.Fatal(err)
				}
				w.done(run)
				p := w.open(four(t, "0 19 * * *")...)
				p.start().stopAfter(2 * time.Minute)
				w.expectAsked("19:00:00 JP 1, 19:00:00 JP 2, 19:00:00 JP 3, 19:00:00 JP 4")
				w.expect(w.halves(), run+" 1")
			})
		})
	}
}

// TestTakeoverOfAResumed: a daemon that takes over a tick resumes the chart that the tick had
// resumed. The share of the day admitted the tick when it first ran, but would deny it now: 8 units
// are two runs of six ticks, one in three, and the tick that resumes the chart has used them up.
func TestTakeoverOfAResumed(t *testing.T) {
	at(t, midnight.Add(-time.Second), 8, func(w *env) {
		w.narrow(2, time.Minute)
		all := four(t, "0-29/5 7 * * *")
		crashed := false
		w.set(func(p *proc, r *http.Request) {
			if !crashed && pageOf[r.URL.Query().Get("pageToken")] == 4 {
				crashed = true
				p.crash() // with the third page stored
			}
		})
		for range 2 {
			w.open(all...).start()
		}
		time.Sleep(11 * time.Minute)
		w.expectAsked("07:00:00 JP 1, 07:00:00 JP 2, 07:10:00 JP 3")
		w.expect(w.halves(), "trending/JP/2026-06-02T07:10:00Z 3")
		time.Sleep(3 * time.Minute)
		asked := w.taken()
		if len(asked) != 1 || !strings.HasSuffix(asked[0], " JP 4") {
			t.Errorf("taken over: %v", asked)
		}
		w.expectLogged(1, "tick taken over", "T07:10:00Z")
		w.expect(w.runs("JP"), map[string]int{"trending/JP/2026-06-02T07:10:00Z": 1})
	})
}
