package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/daemon"
	"quotabudget/internal/quota"
)

func TestDayOfTicks(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "0 */3 * * *", "UTC", eight, 5*time.Minute)
		p := w.open(all...).start()
		time.Sleep(24 * time.Hour)
		w.expectRuns(all, noon, noon.Add(24*time.Hour-time.Second))
		asked := w.taken()
		if len(asked) != 2*8*8 || asked[0] != "21:00:00 US 1" || asked[1] != "21:00:00 US 2" ||
			asked[2] != "21:05:00 GB 1" {
			t.Errorf("%d requests: %v", len(asked), asked[:4])
		}
		p.expectReadyz(http.StatusOK, "")
		const day = `{bucket="default",credential="key1",timezone="America/Los_Angeles",` +
			`window="day"} `
		p.expectMetrics(
			`quota_units_spent_total{bucket="default",credential="key1",`+
				`method="youtube.videos.list",region="US"} 16`,
			`ingest_sweeps_total{outcome="complete"} 64`,
			`quota_suspended{bucket="default",credential="key1"} 0`,
			`quota_ledger_duration_seconds_count{operation="charge"} 128`,
			// two per tick, for the lane and the tick; each of the eight lanes asks once at the
			// start
			`quota_ledger_duration_seconds_count{operation="claim"} 136`,
			`quota_ledger_duration_seconds_count{operation="finish"} 136`,
			`ingest_chart_age_seconds{region="CA"} 1499`,
			`quota_remaining_units`+day+`9936`,
			`quota_used_units`+day+`64`,
			`quota_reset_timestamp_seconds`+day+`1.78047e+09`,
			`ingest_last_success_timestamp_seconds{region="CA"} 1.7804253e+09`, `quota_ledger_up 1`,
			`upstream_request_duration_seconds_count{code="200",method="youtube.videos.list"} 128`,
		)
	})
}

// TestLedgerCallsOfATick counts the ledger calls of a tick of four pages.
func TestLedgerCallsOfATick(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		units int64
		want  string
	}{
		// lease, mark; usage; a charge per page; done, release
		{"enough", 10_000, "9: charge 4, claim 2, finish 2, usage 1"},
		// in addition, the input of the shares
		{"short", 40, "11: between 1, charge 4, claim 2, finish 2, sums 1, usage 1"},
		{"left out", 3, "7: between 1, claim 2, finish 2, sums 1, usage 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at(t, noon.Add(-time.Minute), 10_000, func(w *env) {
				w.narrow(c.units, 24*time.Hour)
				p := w.open(four(t, "0 * * * *")...).start()
				time.Sleep(30 * time.Second)
				p.takeCalls()
				time.Sleep(time.Minute)
				calls := p.takeCalls()
				var each []string
				sum := 0
				for _, operation := range slices.Sorted(maps.Keys(calls)) {
					each = append(each, fmt.Sprint(operation, " ", calls[operation]))
					sum += calls[operation]
				}
				if got := fmt.Sprint(sum, ": ", strings.Join(each, ", ")); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		})
	}
}

// TestRestart: after a downtime of many ticks each region is caught up once, the stalest first. A
// short downtime misses nothing.
func TestRestart(t *testing.T) {
	at(t, noon, 10_000, func(w *env) {
		all := lanes(t, "0 * * * *", "UTC", "US GB DE", 20*time.Minute)
		// until 21:30: GB has run at 21:20, DE at 20:40
		w.restart(all...).stopAfter(2*time.Hour + 30*time.Minute)
		w.taken()
		time.Sleep(4*time.Hour + 15*time.Minute) // 01:45
		again := w.restart(all...)
		time.Sleep(time.Minute)
		w.expectAsked("01:45:00 DE 1, 01:45:00 DE 2, 01:45:00 US 1, 01:45:00 US 2, " +
			"01:45:00 GB 1, 01:45:00 GB 2")
		again.stopAfter(time.Minute)
		w.restart(all...) // 01:47: no tick was missed
		time.Sleep(12 * time.Minute)
		w.expectAsked("")
		time.Sleep(2 * time.Minute)
		w.expectAsked("02:00:00 US 1, 02:00:00 US 2")
	})
}

// TestPanic: after a panic the daemon, the other lanes and the lane's next tick run as usual.
func TestPanic(t *testing.T) {
	at(t, noon.Add(-time.Minute), 10_000, func(w *env) {
		all := lanes(t, "*/10 * * * *", "UTC", "US GB", 0)
		p := w.open(all...)
		struck := false
		w.set(func(_ *proc, r *http.Request) {
			if r.URL.Query().Get("regionCode") == "US" && !struck {
				struck = true
				panic("out of cheese")
			}
		})
		p.start().stopAfter(15 * time.Minute)
		w.expectRan("US", "19:10:00")
		w.expectRan("GB", "19:00:00 19:10:00")
		w.expectLogged(1, "run panicked", "out of cheese", "stack=", "RoundTrip")
		p.expectMetrics("ingest_runs_panicked_total 1")
	})
}

// TestReload: a bad configuration is refused, a good one applies after the current runs, and no
// tick is lost or repeated.
func TestReload(t *testing.T) {
	atNoon(t, func(w *env) {
		old := lanes(t, "*/10 * * * *", "UTC", "US GB", 0)
		p := w.open(old...)
		var next *daemon.Config
		p.load = func(context.Context) (*daemon.Config, error) {
			if next == nil {
				return nil, errors.New("quota.yaml:7: pages: 0 is out of range")
			}
			return next, nil
		}
		w.set(func(_ *proc, r *http.Request) { slow(r, 25*time.Second) }) // a chart takes 50 s
		p.start()
		time.Sleep(20 * time.Second)
		p.reload <- struct{}{} // in the middle of 19:00
		time.Sleep(5 * time.Minute)
		w.expectLogged(1, "refused", "quota.yaml:7: pages: 0 is out of range")
		next = p.with(append(lanes(t, "*/10 * * * *", "UTC", "US", 0),
			lanes(t, "5 * * * *", "UTC", "GB", 0)...)...)
		time.Sleep(5*time.Minute + 10*time.Second)
		p.reload <- struct{}{} // in the middle of 19:10
		p.stopAfter(55*time.Minute + 30*time.Second)
		w.expectRan("US", "19:00:00 19:10:00 19:20:00 19:30:00 19:40:00 19:50:00 20:00:00")
		w.expectRan("GB", "19:00:00 19:10:00 20:05:00")
		w.expectRequests(2 * 10)
	})
}

// TestEnd: when the daemon ends, the page in flight is stored, no further one is requested, the
// claim is released, and another daemon resumes there.
func TestEnd(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "0 * * * *", "UTC", "US", 0)
		w.set(func(_ *proc, r *http.Request) { slow(r, 8*time.Second) })
		p := w.open(all...).start()
		time.Sleep(5 * time.Second) // during the first page
		asked := time.Now()
		p.end()
		w.expect(time.Since(asked), 4*time.Second, "to end")
		w.expectAsked("19:00:08 US 1")
		other := w.restart(all...)
		other.stopAfter(9 * time.Second)
		w.expectAsked("19:00:16 US 2")
		w.expectRuns(all, noon.Add(-time.Second), noon)
	})
}

// TestGrace: a page that does not arrive is given up within the grace period.
func TestGrace(t *testing.T) {
	atNoon(t, func(w *env) {
		w.set(func(_ *proc, r *http.Request) { <-r.Context().Done() })
		p := w.open(lanes(t, "0 * * * *", "UTC", "US", 0)...).start()
		time.Sleep(5 * time.Second)
		asked := time.Now()
		p.end()
		w.expect(time.Since(asked), 15*time.Second, "to end")
		w.expect(w.claim("trending/US", time.Minute), quota.ClaimWon, "of the released lane")
	})
}

// TestTwoDaemons share the ticks. If one dies with a claim, the other takes over within the lease
// and buys no stored page again.
func TestTwoDaemons(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "*/10 * * * *", "UTC", "US GB DE FR", 0)
		a, b := w.pair(all...)
		var victim atomic.Pointer[proc]
		w.set(func(p *proc, r *http.Request) {
			slow(r, time.Second)
			if time.Now().After(noon.Add(time.Hour)) && r.URL.Query().Has("pageToken") &&
				victim.CompareAndSwap(nil, p) {
				p.crash() // with first pages stored
			}
		})
		a.start()
		b.start()
		time.Sleep(time.Hour) // one second before 20:00
		w.expectRuns(all, noon.Add(-time.Second), noon.Add(50*time.Minute))
		w.expectRequests(2 * 4 * 6)
		time.Sleep(20 * time.Minute)
		w.expectRuns(all, noon.Add(-time.Second), noon.Add(70*time.Minute))
		asked := w.taken()
		if n := len(asked); n != 2*4*2 {
			t.Errorf("%d requests for 8 charts of two pages: %v", n, asked)
		}
		if w.logged("tick taken over") == 0 {
			t.Error("the other daemon did not take over")
		}
		late := slices.ContainsFunc(asked, func(line string) bool {
			return line > "20:02:20" && line < "20:10:00"
		})
		if late {
			t.Errorf("takeover later than the lease and one retry: %v", asked)
		}
	})
}
