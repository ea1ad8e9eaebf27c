package daemon_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/daemon"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// reloads makes each reload load the next configuration.
func (p *proc) reloads(next ...*daemon.Config) {
	p.load = func(context.Context) (*daemon.Config, error) {
		w := next[0]
		next = next[1:]
		return w, nil
	}
}

// with returns p's configuration with other lanes.
func (p *proc) with(lanes ...share.Lane) *daemon.Config {
	next := *p.config
	sweep := *p.sweep
	next.Lanes = sweep.Lanes(lanes)
	return &next
}

// TestReload_Hanging: a region that hangs neither delays other lanes nor their changes. It gets
// no second run while the first hangs.
func TestReload_Hanging(t *testing.T) {
	atNoon(t, func(w *env) {
		p := w.open(lanes(t, "*/2 * * * *", "UTC", "US GB DE FR", 0)...)
		p.sweep.Client.Timeout = time.Hour
		wanted := lanes(t, "*/2 * * * *", "UTC", "US GB", 0)
		wanted[1].Pages = 1 // of GB
		wanted = append(wanted, lanes(t, "1-59/2 * * * *", "UTC", "DE JP", 0)...)
		wanted[0] = lanes(t, "* * * * *", "UTC", "US", 0)[0]
		// US and DE tick at other times, GB has fewer pages, FR is gone, JP is new
		p.reloads(p.with(wanted...))
		var runs atOnce
		w.set(func(_ *proc, r *http.Request) {
			if r.URL.Query().Get("regionCode") == "US" {
				runs.during(func() {
					if time.Now().Before(noon.Add(5 * time.Minute)) {
						slow(r, 6*time.Minute+30*time.Second)
					}
				})
			}
		})
		p.start()
		time.Sleep(11 * time.Second) // 19:00:10, US hangs
		p.reload <- struct{}{}
		time.Sleep(4*time.Minute + 30*time.Second) // 19:04:40
		asked := w.taken()
		slices.Sort(asked)
		w.expect(strings.Join(asked, ", "), "19:00:00 DE 1, 19:00:00 DE 2, 19:00:00 FR 1, "+
			"19:00:00 FR 2, 19:00:00 GB 1, 19:00:00 GB 2, 19:01:00 DE 1, 19:01:00 DE 2, "+
			"19:01:00 JP 1, 19:01:00 JP 2, 19:02:00 GB 1, 19:03:00 DE 1, 19:03:00 DE 2, "+
			"19:03:00 JP 1, 19:03:00 JP 2, 19:04:00 GB 1")
		p.stopAfter(5 * time.Minute)
		w.expect(runs.most.Load(), int64(1), "runs of US at once")
		for minute := range 10 { // no tick is lost
			w.expectRun("US", minute)
		}
		w.expectLogged(1, "lanes run", "lanes=4", "unchanged=1")
	})
}

// TestReload_BackAgain: a region that is removed and added again during its last run does not run
// twice at once. A region that was removed for a while catches up as after a restart, not with
// every missed tick.
func TestReload_BackAgain(t *testing.T) {
	atNoon(t, func(w *env) {
		both, one := lanes(t, "* * * * *", "UTC", "GB US", 0), lanes(t, "* * * * *", "UTC", "GB", 0)
		p := w.open(both...)
		p.sweep.CatchUp = true
		p.reloads(p.with(one...), p.with(both...), p.with(one...), p.with(both...))
		p.sweep.CatchUp, p.sweep.Client.Timeout = false, time.Hour
		w.set(func(_ *proc, r *http.Request) {
			if r.URL.Query().Get("regionCode") == "US" && time.Now().Before(noon.Add(time.Second)) {
				slow(r, 100*time.Second)
			}
		})
		p.start()
		for _, wait := range []time.Duration{11 * time.Second, 20 * time.Second, 3 * time.Minute,
			5 * time.Minute} {
			time.Sleep(wait)
			p.reload <- struct{}{}
		}
		p.stopAfter(40 * time.Second) // 19:09:10
		// the region is removed from 19:03:30 to 19:08:30
		w.expectRan("US", "19:00:00 19:01:00 19:02:00 19:03:00 19:08:00 19:09:00")
		w.expect(len(w.runs("GB")), 10, "runs of GB")
	})
}

// TestReload_Twice: if a run hangs and the next schedule is replaced before its lane begins, that
// schedule has no effect, and no tick of the other schedules is lost.
func TestReload_Twice(t *testing.T) {
	atNoon(t, func(w *env) {
		every := lanes(t, "* * * * *", "UTC", "US", 0)
		p := w.open(every...)
		p.sweep.Client.Timeout = time.Hour
		p.reloads(p.with(lanes(t, "30 * * * *", "UTC", "US", 0)...), p.with(every...))
		w.set(func(_ *proc, r *http.Request) {
			if time.Now().Before(noon.Add(time.Second)) {
				slow(r, 220*time.Second)
			}
		})
		p.start()
		for _, wait := range []time.Duration{131 * time.Second, 20 * time.Second} {
			time.Sleep(wait)
			p.reload <- struct{}{}
		}
		p.stopAfter(2 * time.Minute) // 19:04:30
		w.expectRan("US", "19:00:00 19:01:00 19:02:00 19:03:00 19:04:00")
	})
}

// TestReload_StillWaiting: a tick that waits for the lane when its schedule is replaced still
// runs, even if the new schedule is replaced before that.
func TestReload_StillWaiting(t *testing.T) {
	for name, specs := range map[string][]string{
		"twice": {"30 * * * *", "45 * * * *"}, "back": {"30 * * * *", "* * * * *"},
		"thrice": {"30 * * * *", "45 * * * *", "50 * * * *"},
		"other":  {"30 * * * *", "stagger"},
	} {
		t.Run(name, func(t *testing.T) {
			atNoon(t, func(w *env) {
				p := w.open(lanes(t, "* * * * *", "UTC", "US", 0)...)
				var next []*daemon.Config
				for i, spec := range specs {
					if spec == "stagger" {
						moved := lanes(t, specs[i-1], "UTC", "US", 0)
						moved[0].Offset = 10 * time.Second
						next = append(next, p.with(moved...))
						continue
					}
					next = append(next, p.with(lanes(t, spec, "UTC", "US", 0)...))
				}
				p.reloads(next...)
				w.expect(w.claim("trending/US", 3*time.Minute), quota.ClaimWon)
				p.start()
				time.Sleep(11 * time.Second) // 19:00:10
				for range next {
					p.reload <- struct{}{}
					time.Sleep(7 * time.Second)
				}
				p.stopAfter(3*time.Minute + 10*time.Second - 7*time.Second*time.Duration(len(next)))
				w.expectRun("US", 0) // 19:03:20
			})
		})
	}
}

// TestReload_NotBegun: two ticks wait for the lane. While the first runs, the schedule is replaced
// twice, so the lane in between never begins. The second tick still runs.
func TestReload_NotBegun(t *testing.T) {
	atNoon(t, func(w *env) {
		p := w.open(lanes(t, "0 * * * *", "UTC", "US", 0)...)
		p.sweep.Client.Timeout = time.Hour
		var next []*daemon.Config
		for _, spec := range strings.Fields("1 30 40 50") {
			next = append(next, p.with(lanes(t, spec+" * * * *", "UTC", "US", 0)...))
		}
		p.reloads(next...)
		w.set(func(_ *proc, r *http.Request) { slow(r, 20*time.Second) })
		w.expect(w.claim("trending/US", 90*time.Second), quota.ClaimWon)
		p.start()
		for _, wait := range []time.Duration{11 * time.Second, time.Minute, 40 * time.Second,
			time.Second} { // 19:00:10, 19:01:10, 19:01:50, 19:01:51
			time.Sleep(wait)
			p.reload <- struct{}{}
		}
		p.stopAfter(3 * time.Minute)
		w.expectRan("US", "19:00:00 19:01:00")
	})
}
