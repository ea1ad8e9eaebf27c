package daemon_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestLedgerAway_NoTick: a daemon that finds the ledger away at its start logs when it is back,
// although the next tick is hours away.
func TestLedgerAway_NoTick(t *testing.T) {
	at(t, noon.Add(time.Minute), 10_000, func(w *env) {
		p := w.open(lanes(t, "0 */6 * * *", "America/Los_Angeles", eight, 0)...)
		p.mute.Store(true)
		p.start()
		time.Sleep(10 * time.Minute)
		p.expectReadyz(http.StatusServiceUnavailable, "ticks cannot be claimed")
		p.mute.Store(false)
		time.Sleep(15 * time.Second)
		p.expectReadyz(http.StatusOK, "")
		w.expectLogged(1, "the ledger answers again")
		w.expectLogged(1, "level=ERROR")
		p.end()
		w.expectAsked("")
	})
}

// TestUpstreamAway_Reload: a reload, which may correct the endpoint or the key, makes the daemon
// try soon. Many reloads neither cause more requests nor delay the next one.
func TestUpstreamAway_Reload(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "0 */6 * * *", "America/Los_Angeles", eight, 0)
		p := w.open(all...)
		same := p.with(all...)
		p.reloads(same, same, same, same, same, same, same, same, same, same)
		back := w.away()
		p.start()
		time.Sleep(time.Hour + 5*time.Minute) // a probe every ten minutes
		before := w.units()
		for range 9 {
			p.reload <- struct{}{}
			time.Sleep(10 * time.Second)
		}
		if n := w.units() - before; n < 1 || n > 3 {
			t.Errorf("%d units in 90 s", n)
		}
		time.Sleep(50 * time.Minute)
		back()
		p.reload <- struct{}{}
		time.Sleep(31 * time.Second)
		w.expectRuns(all, noon.Add(-time.Second), noon)
	})
}

// TestUpstreamAway_Catalogue: while the catalogue is away too, the lanes do not queue up to probe
// the upstream, because no lane can.
func TestUpstreamAway_Catalogue(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "0 */6 * * *", "America/Los_Angeles", eight, 0)
		p := w.open(all...)
		back := w.away()
		p.start()
		time.Sleep(5 * time.Minute)
		unlock, before := w.lock(), w.logged("tick claimed")
		time.Sleep(15 * time.Minute)
		if n := w.logged("tick claimed") - before; n > 12 {
			t.Errorf("%d attempts in a quarter of an hour", n)
		}
		unlock()
		back()
		time.Sleep(10*time.Minute + 10*time.Second)
		w.expectRuns(all, noon.Add(-time.Second), noon)
	})
}

// TestUpstreamAway_Again: if the upstream goes down again before all lanes have run, they do not
// run the ticks missed in the first outage.
func TestUpstreamAway_Again(t *testing.T) {
	atNoon(t, func(w *env) {
		p := w.open(lanes(t, "0 * * * *", "UTC", eight, 0)...)
		w.set(func(_ *proc, r *http.Request) { slow(r, 10*time.Second) })
		p.start()
		time.Sleep(10 * time.Minute)
		back := w.away()
		time.Sleep(3*time.Hour + 20*time.Minute) // 22:30
		back()
		for w.logged("the upstream answers again") == 0 {
			time.Sleep(time.Second)
		}
		back = w.away()
		time.Sleep(10 * time.Minute)
		w.taken()
		back()
		p.stopAfter(8 * time.Minute)
		w.expectTwoRuns()
	})
}

// expectTwoRuns checks that each lane has run its tick before an outage and its last one during
// it.
func (w *env) expectTwoRuns() {
	w.Helper()
	for run := range w.runs(eight) {
		if !strings.HasSuffix(run, "T19:00:00Z") && !strings.HasSuffix(run, "T22:00:00Z") {
			w.Errorf("%s was run", run)
		}
	}
	w.expectLogged(0, "level=WARN", "left out")
	w.expect(len(w.runs(eight)), 16, "runs")
}

// TestLedgerAway_Ticks: after an outage of the ledger, each lane runs only the last of its missed
// ticks.
func TestLedgerAway_Ticks(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "0 * * * *", "UTC", eight, 0)
		p := w.open(all...).start()
		time.Sleep(10 * time.Minute)
		p.mute.Store(true)
		time.Sleep(3*time.Hour + 20*time.Minute) // 22:30
		p.mute.Store(false)
		p.stopAfter(5 * time.Minute)
		w.expectTwoRuns()
		again := w.restart(all...) // no tick of that time runs again
		time.Sleep(5 * time.Second)
		w.taken()
		again.stopAfter(time.Minute)
		w.expectAsked("")
	})
}

// TestUpstreamAway_OthersTicks: a lane whose tick another daemon has done passes its probe on to
// a lane that still has one to run.
func TestUpstreamAway_OthersTicks(t *testing.T) {
	atNoon(t, func(w *env) {
		w.open(lanes(t, "0 * * * *", "UTC", eight, time.Second)...).start()
		time.Sleep(10 * time.Minute)
		back := w.away()
		time.Sleep(54 * time.Minute) // 20:04, probes at 20:00:30, 20:01:30, 20:03:30, 20:07:30
		for region := range strings.FieldsSeq("GB DE FR IN BR AU CA") {
			w.done("trending/" + region + "/2026-06-01T20:00:00Z")
		}
		back()
		time.Sleep(4 * time.Minute) // 20:08
		w.expect(w.runs("US")["trending/US/2026-06-01T20:00:00Z"], 1, "runs")
		w.expectLogged(1, "the upstream answers again")
	})
}

// TestUpstreamAway_Restart: a daemon restarted during an outage runs one tick per region for all
// waiting ones, as the previous daemon would have.
func TestUpstreamAway_Restart(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "* * * * *", "UTC", eight, 0)
		p := w.restart(all...)
		back := w.away()
		p.stopAfter(7*time.Minute + 30*time.Second)
		back()
		p = w.restart(all...)
		p.stopAfter(20 * time.Second)
		if n := len(w.runs(eight)); n != 8 ||
			w.runs("US")["trending/US/2026-06-01T19:07:00Z"] != 1 {
			t.Errorf("%d runs: %v", n, w.runs(eight))
		}
	})
}
