package daemon_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/daemon"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// expectRan checks that a region has one complete chart for each of the ticks at these times on
// noon's day, and no other.
func (w *env) expectRan(region, times string) {
	w.Helper()
	want := make(map[string]int)
	for at := range strings.FieldsSeq(times) {
		want["trending/"+region+"/2026-06-01T"+at+"Z"] = 1
	}
	w.expect(w.runs(region), want, "runs")
}

// expectRun checks that the region has a complete chart for the tick this many minutes after noon.
func (w *env) expectRun(region string, minute int) {
	w.Helper()
	run := fmt.Sprintf("trending/%s/2026-06-01T19:%02d:00Z", region, minute)
	w.expect(w.runs(region)[run], 1, run)
}

// TestRestart_Coalesced: ticks missed while no daemon ran become one run, however recent, and the
// next start does not find them again.
func TestRestart_Coalesced(t *testing.T) {
	at(t, noon.Add(30*time.Second), 10_000, func(w *env) {
		all := lanes(t, "* * * * *", "UTC", "US GB", 0)
		for _, want := range []int{4, 0} {
			p := w.restart(all...)
			p.stopAfter(4 * time.Second)
			w.expectRequests(want)
		}
		time.Sleep(5 * time.Minute) // 19:05:38, still within the time that findMissed checks
		p := w.restart(all...)
		p.stopAfter(4 * time.Second)
		w.expectRan("US", "19:00:00 19:05:00")
	})
}

// TestRestart_Crash: if a daemon is killed before the first page of a tick is stored, the next
// daemon runs that tick although a later one is due.
func TestRestart_Crash(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "@every 10s", "UTC", "US", 0)
		a := w.open(all...)
		a.config.Lease = 6 * time.Second
		w.set(func(p *proc, r *http.Request) {
			if p == a {
				p.crash()
				<-r.Context().Done()
			}
		})
		a.start()
		time.Sleep(16 * time.Second)
		b := w.open(all...)
		b.sweep.CatchUp, b.config.Lease = true, 6*time.Second
		b.start().stopAfter(3 * time.Second)
		w.expectRan("US", "19:00:00 19:00:10")
	})
}

// everyThreeSeconds returns a function that opens a daemon with one lane, which has a tick every
// three seconds and a lease of that length.
func everyThreeSeconds(t *testing.T, w *env) func() *proc {
	return func() *proc {
		p := w.open(lanes(t, "@every 3s", "UTC", "US", 0)...)
		p.config.Lease = 3 * time.Second
		return p
	}
}

// TestRestart_Starved: a tick that a crash interrupted is run again even if sweeps take longer than
// the interval, so that another daemon always has a later tick to run.
func TestRestart_Starved(t *testing.T) {
	at(t, noon.Add(-time.Second), 1e7, func(w *env) {
		open := everyThreeSeconds(t, w)
		w.set(func(_ *proc, r *http.Request) { slow(r, time.Hour) })
		killed := open().start()
		time.Sleep(13200 * time.Millisecond)
		killed.crash() // at 19:00:12.2, so its lease ends at 19:00:15
		w.set(func(_ *proc, r *http.Request) { slow(r, 2*time.Second) })
		time.Sleep(2700 * time.Millisecond)
		open().start() // at 19:00:14.9; a later start would find 19:00:00 too old
		time.Sleep(400 * time.Millisecond)
		open().start()
		time.Sleep(time.Minute)
		w.expectRun("US", 0)
	})
}

// TestRestart_NoGap: a tick that a crash interrupted is run again even if another daemon's runs
// take nearly the whole interval, so that each ends just before the next one begins on time.
func TestRestart_NoGap(t *testing.T) {
	at(t, noon.Add(-time.Second), 1e7, func(w *env) {
		open := everyThreeSeconds(t, w)
		w.set(func(_ *proc, r *http.Request) { slow(r, time.Hour) })
		killed := open().start()
		time.Sleep(3200 * time.Millisecond)
		killed.crash() // at 19:00:02.2
		w.set(func(_ *proc, r *http.Request) { slow(r, 1400*time.Millisecond) })
		time.Sleep(2300 * time.Millisecond)
		waiting := open().start() // at 19:00:04.5, when the lane is still leased
		time.Sleep(100 * time.Millisecond)
		waiting.mute.Store(true)
		time.Sleep(11900 * time.Millisecond)
		open().start() // at 19:00:16.5, when 19:00:00 is too old to be found
		time.Sleep(2 * time.Second)
		waiting.mute.Store(false)
		time.Sleep(time.Minute)
		w.expectRun("US", 0)
	})
}

// TestRestart_BeforeMark: a tick that waits for its turn and is marked just after another daemon
// has started is not lost, if the first daemon is then killed.
func TestRestart_BeforeMark(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "0 * * * *", "UTC", "US GB DE FR IN", 0)
		first := w.open(all...)
		w.set(func(p *proc, r *http.Request) {
			if p == first {
				<-r.Context().Done()
			}
		})
		first.start()
		time.Sleep(1500 * time.Millisecond) // 19:00:00.5
		second := w.open(all...).start()
		time.Sleep(time.Second)
		first.crash()
		second.stopAfter(10 * time.Minute)
		for _, region := range strings.Fields("US GB DE FR IN") {
			w.expectRun(region, 0)
		}
	})
}

// TestRestart_Waiting: a tick that waits for its jitter or a turn when its daemon dies is not
// lost.
func TestRestart_Waiting(t *testing.T) {
	atNoon(t, func(w *env) {
		for range 2 {
			p := w.open(lanes(t, "0 * * * *", "UTC", "US GB DE FR IN", 0)...)
			p.sweep.Jitter = 5 * time.Minute
			p.start().stopAfter(6 * time.Second)
		}
		p := w.open(lanes(t, "0 * * * *", "UTC", "US GB DE FR IN", 0)...).start()
		p.stopAfter(5 * time.Second)
		w.expect(len(w.runs(eight)), 5, "runs")
	})
}

// TestRestart_Turn: with five lanes and four turns, the tick that waits for a turn is not lost.
func TestRestart_Turn(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "* * * * *", "UTC", "US GB DE FR IN", 0)
		a := w.open(all...)
		a.sweep.Client.Timeout = time.Hour
		w.set(func(p *proc, r *http.Request) {
			if p == a {
				<-r.Context().Done()
			}
		})
		a.start()
		time.Sleep(3*time.Minute + 30*time.Second)
		a.crash()
		b := w.open(all...).start()
		b.stopAfter(3 * time.Minute)
		for _, region := range strings.Fields("US GB DE FR IN") {
			for minute := range 5 {
				w.expectRun(region, minute)
			}
		}
	})
}

// TestReload_Offsets: removing a region moves later regions' ticks to earlier moments. A tick whose
// old moment was still to come and whose new one has passed runs; a tick that has run does not run
// again.
func TestReload_Offsets(t *testing.T) {
	atNoon(t, func(w *env) {
		p := w.open(lanes(t, "*/10 * * * *", "UTC", "US GB DE", 3*time.Minute)...)
		p.reloads(p.with(lanes(t, "*/10 * * * *", "UTC", "GB DE", 3*time.Minute)...))
		p.start()
		time.Sleep(4*time.Minute + time.Second) // DE's tick moves from 19:06 to 19:03
		p.reload <- struct{}{}
		p.stopAfter(10 * time.Minute)
		want := map[string]int{"trending/US/2026-06-01T19:00:00Z": 1,
			"trending/GB/2026-06-01T19:00:00Z": 1, "trending/DE/2026-06-01T19:00:00Z": 1,
			"trending/GB/2026-06-01T19:10:00Z": 1, "trending/DE/2026-06-01T19:10:00Z": 1}
		w.expect(w.runs(eight), want, "runs")
		if asked := w.taken(); len(asked) != 10 || asked[4] != "19:04:00 DE 1" {
			t.Errorf("asked for %v", asked)
		}
	})
}

// TestReload_Waiting: a tick that waits for its turn runs even if the schedule is replaced.
func TestReload_Waiting(t *testing.T) {
	atNoon(t, func(w *env) {
		p := w.open(lanes(t, "0 * * * *", "UTC", "US GB DE FR IN", 0)...)
		p.reloads(p.with(lanes(t, "30 * * * *", "UTC", "US GB DE FR IN", 0)...))
		w.set(func(_ *proc, r *http.Request) { slow(r, 20*time.Second) })
		p.start()
		time.Sleep(11 * time.Second)
		p.reload <- struct{}{}
		p.stopAfter(35 * time.Minute)
		for _, region := range strings.Fields("US GB DE FR IN") {
			w.expectRan(region, "19:00:00 19:30:00")
		}
	})
}

// TestEnd_Lease: the lease is renewed while the page in flight is finished, however long that
// takes within the grace period.
func TestEnd_Lease(t *testing.T) {
	atNoon(t, func(w *env) {
		all := lanes(t, "0 * * * *", "UTC", "US", 0)
		a, b := w.pair(all...)
		a.config.Lease, b.config.Lease = 3*time.Second, 3*time.Second
		var holder atomic.Pointer[proc]
		w.set(func(p *proc, r *http.Request) {
			holder.CompareAndSwap(nil, p)
			slow(r, 9*time.Second)
		})
		a.start()
		b.start()
		time.Sleep(2 * time.Second)
		holder.Load().end()
		time.Sleep(30 * time.Second)
		got := strings.Join(w.taken(), ", ")
		// the other daemon tries every second
		if got != "19:00:09 US 1, 19:00:18 US 2" && got != "19:00:09 US 1, 19:00:19 US 2" {
			t.Errorf("asked for %s", got)
		}
	})
}

// TestRestart_Hanging: a region that hangs while it catches up delays the others until their next
// tick at most.
func TestRestart_Hanging(t *testing.T) {
	at(t, noon.Add(5*time.Second), 1_000_000, func(w *env) {
		p := w.open(lanes(t, "@every 10s", "UTC", "US GB", 0)...)
		p.sweep.CatchUp, p.sweep.Client.Timeout = true, time.Hour
		w.set(func(_ *proc, r *http.Request) {
			if r.URL.Query().Get("regionCode") == "US" {
				<-r.Context().Done()
			}
		})
		p.start().stopAfter(16 * time.Second)
		w.expectRan("GB", "19:00:10 19:00:20")
	})
}

// TestObserved: when limits are only observed, ticks that the shares would leave out run.
func TestObserved(t *testing.T) {
	at(t, midnight, 6, func(w *env) {
		all := lanes(t, "0 * * * *", "UTC", "US GB", 0)
		p := w.open(all...)
		p.sweep.Budget.Observe = true
		p.start().stopAfter(5*time.Hour - time.Minute)
		w.expectRuns(all, midnight, midnight.Add(5*time.Hour-time.Minute))
		w.expectLogged(0, "tick left out")
		if w.logged("it is observed only") == 0 {
			t.Error("the log does not list the ticks that the shares leave out")
		}
	})
}

// TestFloorUnpaced: a pace that other regions have used up does not delay a region that has not yet
// used its floor of the day, nor does a job of the region's name without a floor.
func TestFloorUnpaced(t *testing.T) {
	at(t, midnight.Add(-time.Second), 240, func(w *env) {
		w.paces = w.line(&quota.Pace{Slack: 2})
		all := lanes(t, "0 0-3 * * *", "America/Los_Angeles", "US GB", time.Minute)
		all[1].Floor = 4
		p := w.open(all...)
		p.job("GB", "30 7 * * *", 1, "")
		p.start()
		time.Sleep(31 * time.Second) // US has had the slack
		if _, err := w.look.sweep.Budget.Charge(w.Context(),
			quota.Call{Bucket: quota.DefaultBucket, Units: 100, Manual: true}); err != nil {
			t.Fatal(err)
		}
		p.stopAfter(4 * time.Hour)
		w.expect(w.runs("US"), map[string]int{"trending/US/2026-06-02T07:00:00Z": 1})
		w.expect(len(w.runs("GB")), 2, "runs of GB")
		p.expectMetrics(`ingest_sweeps_total{outcome="paced"} 5`,
			`ingest_sweeps_total{outcome="exhausted"} 0`)
	})
}

// TestShares_LedgerAhead: with a ledger whose clock is a day ahead, the units left in the ledger's
// day are compared with the ticks until its reset, which follow this host's clock.
func TestShares_LedgerAhead(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Clock: true})
	now := time.Now().Add(26 * time.Hour)
	server.SetNow(t, now)
	window, err := quota.ParseWindow("day", "UTC")
	must(t, err)
	l, sweep := onRedis(t, server, quota.Limit{Bucket: quota.DefaultBucket, Window: window})
	w := daemon.Config{Lanes: sweep.Lanes(lanes(t, "* * * * *", "UTC", "US", 0)), Spending: l}
	shares, err := w.Shares(t.Context(), "key1")
	if err != nil || len(shares) == 0 {
		t.Fatal(shares, err)
	}
	_, reset := window.Bounds(now)
	minutes := int64(time.Until(reset.Add(-26*time.Hour)) / time.Minute)
	if n := shares[0].Remaining; n < minutes-1 || n > minutes+1 {
		t.Errorf("%d ticks to come until %v; want %d", n, reset, minutes)
	}
}

func (w *env) addMissed(_ string, l share.Lane, ticks int64, last time.Time, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = append(w.lost, fmt.Sprintf("%d %s %s: %s", ticks, l.Name(), last.Format("15:04"), why))
}

// TestMissedTicks: ticks that came while no daemon ran are reported at the next start, once, and
// those of an outage when it ends. No tick is missed at the first start, or at a start while
// another daemon runs.
func TestMissedTicks(t *testing.T) {
	atNoon(t, func(w *env) {
		open := func() *proc {
			p := w.open(lanes(t, "0 * * * *", "UTC", "US", 0)...)
			p.config.Catalog, p.sweep.CatchUp = p.catalog, true
			return p.start()
		}
		expect := func(want ...string) {
			t.Helper()
			w.mu.Lock()
			defer w.mu.Unlock()
			if !slices.Equal(w.lost, want) {
				t.Errorf("missed %q, want %q", w.lost, want)
			}
		}
		open().stopAfter(10 * time.Minute) // ran 19:00
		expect()
		time.Sleep(3 * time.Hour)
		p := open() // 22:10
		time.Sleep(time.Minute)
		const down = "3 trending/US 22:00: no daemon ran"
		expect(down)
		q := open()
		time.Sleep(time.Minute)
		expect(down)
		q.stopAfter(time.Minute)
		p.mute.Store(true)
		time.Sleep(2 * time.Hour) // 00:13
		p.mute.Store(false)
		p.stopAfter(5 * time.Minute)
		expect(down, "1 trending/US 23:00: ledger, upstream or catalogue was away")
	})
}

// TestClockTurnedBack: a lane whose ticks ran while the clock was a day ahead does not wait for the
// next day.
func TestClockTurnedBack(t *testing.T) {
	for ahead, warnings := range map[time.Duration]int{
		24 * time.Hour: 2, 55 * time.Minute: 2, 10 * time.Minute: 0,
	} {
		t.Run(ahead.String(), func(t *testing.T) {
			atNoon(t, func(w *env) {
				all := lanes(t, "0 * * * *", "UTC", "US GB", 0)
				p := w.open(all...)
				p.start()
				time.Sleep(10 * time.Minute)
				p.daemon.RanAhead(ahead)
				time.Sleep(3 * time.Hour)
				w.expectRuns(all, noon.Add(-time.Second), noon.Add(3*time.Hour))
				w.expect(w.logged("the clock was turned back"), warnings, "warnings")
			})
		})
	}
}
