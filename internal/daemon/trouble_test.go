package daemon_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/youtube"
)

// TestFourAtOnce: eight lanes with the same tick take turns, and a lane whose run takes longer
// than its interval does not overlap itself.
func TestFourAtOnce(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "* * * * *", "UTC", eight, 0)
		p := w.open(all...)
		p.config.Lease = 30 * time.Second // a lane is behind after two and a half minutes
		var runs atOnce
		w.set(func(_ *proc, r *http.Request) { // 50 s a chart, 100 s for all eight
			runs.during(func() { slow(r, 25*time.Second) })
		})
		p.start().stopAfter(20 * time.Minute)
		w.expect(runs.most.Load(), int64(4), "runs at once")
		if n := len(w.runs(eight)); n < 8*11 || n > 8*12 {
			t.Errorf("%d runs in twenty minutes that have time for 12 of each lane", n)
		}
		if w.logged("tick left out: the lane is behind") == 0 {
			t.Error("the ticks that could not run were not logged")
		}
	})
}

// TestLostClaim: a daemon that cannot renew a claim ends the run before another may take the
// claim.
func TestLostClaim(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "0 * * * *", "UTC", "US", 0)
		a := w.open(all...)
		a.sweep.Client.Timeout = time.Hour // a page may take longer than a lease
		var late atomic.Int64
		w.set(func(p *proc, r *http.Request) {
			if p == a {
				a.mute.Store(true)
				if time.Now().After(noon.Add(2 * time.Minute)) {
					late.Add(1)
				}
				slow(r, 150*time.Second)
			}
		})
		a.start()
		time.Sleep(10 * time.Second)
		w.restart(all...) // the restarted daemon runs the tick
		time.Sleep(10 * time.Minute)
		w.expect(late.Load(), int64(0), "pages after the lease")
		w.expectLogged(1, "lease lost")
		w.expectLogged(1, "tick taken over")
		w.expectRuns(all, noon.Add(-time.Second), noon)
		a.mute.Store(false)
	})
}

// TestLongRun: a claim is renewed as long as the run takes, and no other daemon runs the tick.
func TestLongRun(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "*/2 * * * *", "UTC", "US GB", 0)
		w.set(func(_ *proc, r *http.Request) { slow(r, 25*time.Second) })
		for range 2 {
			p := w.open(all...)
			p.config.Lease = 6 * time.Second
			p.start()
		}
		time.Sleep(10 * time.Minute)
		w.expectRuns(all, noon.Add(-time.Second), noon.Add(9*time.Minute))
		w.expectRequests(2 * 2 * 5)
		w.expectLogged(0, "tick taken over")
	})
}

// TestDeathBeforeDone: a daemon is killed after its chart is complete and before it marks the
// tick done. Nothing is bought again.
func TestDeathBeforeDone(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "0 * * * *", "UTC", "US", 0)
		a := w.open(all...)
		a.doomed.Store(true)
		a.start()
		time.Sleep(time.Minute)
		b := w.open(all...)
		// later finds the chart, and leaves the tick to no other daemon
		later := w.open(all...)
		b.sweep.CatchUp, later.sweep.CatchUp = true, true
		b.start()
		later.start()
		time.Sleep(10 * time.Minute)
		w.expectRequests(2)
		w.expectRuns(all, noon.Add(-time.Second), noon)
	})
}

// TestDeathBeforeDone_Waiting: the same while another daemon waits for the tick.
func TestDeathBeforeDone_Waiting(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "0 * * * *", "UTC", "US", 0)
		a, b := w.pair(all...)
		var first atomic.Bool
		w.set(func(p *proc, _ *http.Request) {
			if first.CompareAndSwap(false, true) {
				p.doomed.Store(true)
			}
		})
		a.start()
		b.start()
		time.Sleep(10 * time.Minute)
		w.expectRequests(2)
		w.expectLogged(1, "its chart is already complete")
	})
}

// TestRefusedKey: a refused key ends the daemon at once, because every further request would be
// charged and refused.
func TestRefusedKey(t *testing.T) {
	atNoon(t, func(w *env) {
		p := w.open(lanes(t, "0 * * * *", "UTC", "US GB", time.Minute)...)
		w.standin.Keys = []string{"another"}
		p.start()
		err := <-p.ended
		if kind, ok := youtube.KindOf(err); !ok || kind != youtube.BadCredential {
			t.Errorf("Run returned %v", err)
		}
		if time.Since(noon) > time.Second {
			t.Errorf("it ended after %v", time.Since(noon))
		}
		w.expectLogged(1, "refuses the key")
		w.expectLogged(1, "tick given back")
	})
}

// TestFailures: a region without a chart, or with failing responses, affects one tick only.
func TestFailures(t *testing.T) {
	atNoon(t, func(w *env) {
		p := w.open(lanes(t, "0 * * * *", "UTC", "US GB", 10*time.Minute)...)
		w.standin.Faults = []string{"500:US"}
		p.start()
		time.Sleep(90 * time.Minute)
		w.expectLogged(1, "tick failed", "tick=trending/US/2026-06-01T19:00:00Z")
		w.expectLogged(2, "tick failed")
		w.expectLogged(2, "tick done", "GB")
		p.end()
		p.expectMetrics(`ingest_sweeps_total{outcome="failed"} 2`,
			`ingest_failures_total{kind="transient",region="US"} 2`,
			`ingest_failures_total{kind="transient",region="GB"} 0`,
			`ingest_failures_total{kind="ledger",region="US"} 0`)
	})
}

// TestInvalidRegion: a region the upstream does not know costs one unit and one log line a week.
func TestInvalidRegion(t *testing.T) {
	atNoon(t, func(w *env) {
		p := w.open(lanes(t, "0 * * * *", "UTC", "AQ", 0)...).start()
		time.Sleep(7 * 24 * time.Hour)
		w.expectRequests(1)
		w.expectLogged(1, "level=ERROR", "has no such region")
		w.expectLogged(1, "level=ERROR")
		p.stopAfter(2 * time.Hour)
		w.expectRequests(1)
	})
}
