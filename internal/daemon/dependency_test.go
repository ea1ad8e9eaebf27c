package daemon_test

import (
	"database/sql"
	"errors"
	"net/http"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// away makes the upstream fail until back is called.
func (w *env) away() (back func()) {
	w.Helper()
	w.standin.SetFaults("503")
	return func() { w.standin.SetFaults() }
}

// units returns all units charged.
func (w *env) units() int64 { return sum(w.spent()) }

// TestUpstreamAway: an upstream that is down costs a few units in total, not a few per lane. Ticks
// wait. When the upstream is back each lane runs only its last tick, the stalest region first.
func TestUpstreamAway(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "*/30 * * * *", "UTC", eight, time.Minute)
		p := w.open(all...).start()
		time.Sleep(20 * time.Minute) // each lane has a chart of 19:00
		before := w.units()
		back := w.away()
		time.Sleep(3*time.Hour + 30*time.Minute) // 22:50
		spent := w.units() - before
		// the first lane's attempts, one of the second, and a probe every ten minutes
		if spent > 5+24 || len(w.runs(eight)) != 8 {
			t.Errorf("%d units for an upstream that is down, %d charts", spent, len(w.runs(eight)))
		}
		w.expectLogged(5, "level=ERROR")
		w.expectLogged(1, "level=ERROR", "the upstream does not answer", "hint=")
		w.expectLogged(3, "level=ERROR", "the upstream still does not answer",
			"since=2026-06-01T19:31:0", "ticks_waiting=")
		w.expectLogged(1, "level=ERROR", "tick failed")
		p.expectReadyz(http.StatusOK, "the upstream has not answered since")
		p.expectMetrics(`ingest_away{what="upstream"} 1`)
		w.taken()
		back()
		time.Sleep(9*time.Minute + 50*time.Second) // before the next tick
		w.expectRequests(2 * 8)
		if runs := w.runs(eight); len(runs) != 16 ||
			runs["trending/US/2026-06-01T22:30:00Z"] != 1 ||
			runs["trending/CA/2026-06-01T22:30:00Z"] != 1 {
			t.Errorf("ran %v", runs)
		}
		w.expectLogged(1, "level=INFO", "the upstream answers again", "away=3h", "ticks_waiting=")
		p.end()
		again := w.restart(all...) // no tick of that time runs again
		again.stopAfter(5 * time.Second)
		w.expectAsked("")
	})
}

// TestUpstreamAway_Probes: each daemon sends one request at a time to find out whether the
// upstream is back.
func TestUpstreamAway_Probes(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "0 * * * *", "UTC", eight, 0)
		a, b := w.pair(all...)
		back := w.away()
		var probes atOnce
		w.set(func(_ *proc, r *http.Request) {
			if time.Now().After(noon.Add(20 * time.Second)) {
				probes.during(func() { slow(r, 5*time.Second) })
			} else {
				slow(r, 5*time.Second)
			}
		})
		a.start()
		b.start()
		time.Sleep(30 * time.Minute)
		if n := w.units(); n > 2*(8+7) || probes.most.Load() > 2 {
			t.Errorf("%d units, %d at once", n, probes.most.Load())
		}
		back()
		time.Sleep(20 * time.Minute)
		w.expectRuns(all, noon.Add(-time.Second), noon)
	})
}

// TestRegionFailsAlone: a region whose requests always fail does not delay the other lanes' ticks
// for long.
func TestRegionFailsAlone(t *testing.T) {
	atNoon(t, func(w *env) {
		all := append(lanes(t, "* * * * *", "UTC", "US", 0),
			lanes(t, "0 * * * *", "UTC", "GB", 0)...)
		p := w.open(all...)
		w.standin.SetFaults("503:US")
		p.start().stopAfter(3*time.Hour + 10*time.Minute)
		w.expect(len(w.runs("GB")), 4, "runs of GB")
		if n := w.spent()["US"]; n > 60 { // without the breaker it would be 4 a minute
			t.Errorf("US was charged %d units", n)
		}
	})
}

// TestLedgerAway_Told: with any number of lanes an outage is logged when it begins, once an hour,
// and when it ends.
func TestLedgerAway_Told(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "0 */6 * * *", "America/Los_Angeles", eight, 0)
		p := w.open(all...)
		p.mute.Store(true)
		p.start()
		time.Sleep(2*time.Hour + 30*time.Minute)
		p.mute.Store(false)
		time.Sleep(time.Minute)
		w.expectRuns(all, noon.Add(-time.Second), noon)
		w.expectLogged(3, "level=ERROR")
		w.expectLogged(0, "level=WARN")
		w.expectLogged(1, "the ledger does not answer", "effect=", quota.ErrUnreachable.Error(),
			"hint=")
		w.expectLogged(2, "the ledger still does not answer", "since=2026-06-01T18:59:59",
			"ticks_waiting=8")
		w.expectLogged(1, "level=INFO", "the ledger answers again", "away=2h30m",
			"ticks_waiting=8")
	})
}

// lock holds the catalogue's write lock, as another program would.
func (w *env) lock() (unlock func()) {
	w.Helper()
	db, err := sql.Open("sqlite", "file:"+w.look.catalog.Path()+"?_txlock=immediate")
	must(w, err)
	tx, err := db.Begin()
	must(w, err)
	return func() {
		if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
			w.Error(err)
		}
	}
}

// TestCatalogueLocked: while the catalogue cannot store pages, no units are charged. Ticks wait,
// and the outage is logged once.
func TestCatalogueLocked(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "0 * * * *", "UTC", eight, 0)
		p := w.open(all...)
		unlock := w.lock()
		p.start()
		time.Sleep(5 * time.Minute)
		w.expect(w.units(), int64(0), "units")
		w.expectLogged(1, "level=ERROR")
		w.expectLogged(1, "the catalogue cannot store pages", "another process is writing", "hint=")
		p.expectReadyz(http.StatusServiceUnavailable, "another process is writing")
		w.expect(w.claim("trending/US", time.Second), quota.ClaimWon, "of the released lane")
		unlock()
		p.expectReadyz(http.StatusOK, "")
		time.Sleep(time.Minute)
		w.expectRuns(all, noon.Add(-time.Second), noon)
		w.expectLogged(1, "level=INFO", "the catalogue stores pages again", "ticks_waiting=8")
	})
}

// TestBreaker: the upstream counts as down only after four failures in a row from two runs. An
// upstream that sends any response is not down.
func TestBreaker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault, regions string
		down           int
		units          int64 // charged; 0 for any number
	}{
		{"503*3", "US GB", 0, 0}, {"503*4", "US GB", 1, 0}, {"503:US", "US GB", 0, 0},
		{"404-chart", eight, 0, 8}, {"429", eight, 0, 8},
	} {
		t.Run(c.fault, func(t *testing.T) {
			atNoon(t, func(w *env) {
				p := w.open(lanes(t, "0 * * * *", "UTC", c.regions, 0)...)
				p.sweep.Client.Retry.Throttled = 0
				w.standin.SetFaults(c.fault)
				p.start().stopAfter(5 * time.Minute)
				w.expectLogged(c.down, "the upstream does not answer")
				if c.units > 0 {
					w.expect(w.units(), c.units, "units")
				}
			})
		})
	}
}

// TestBreaker_Answered: a response resets the count of failures, and the run to which they belong.
func TestBreaker_Answered(t *testing.T) {
	atNoon(t, func(w *env) {
		all := append(lanes(t, "*/5 * * * *", "UTC", "US", 0),
			lanes(t, "0 * * * *", "UTC", "GB", 0)...)
		p := w.open(all...)
		w.standin.SetFaults("503*2") // once for each lane
		p.start()
		time.Sleep(time.Minute)
		w.expect(len(w.runs("US GB")), 2, "runs")
		w.expectLogged(2, "tick done")
		w.standin.SetFaults("503:US")
		p.stopAfter(8 * time.Minute) // one tick
		w.expectLogged(1, "tick failed")
		w.expectLogged(0, "the upstream does not answer")
	})
}
