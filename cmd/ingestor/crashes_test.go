package main

import (
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/daemon"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// long makes the daemons crash for two minutes instead of some seconds: make soak.
var long = flag.Bool("long", false, "let the daemons die for two minutes")

// expectDone checks the claim of every tick between two moments, and calls check with each. The
// tick is done, or its chart is complete: a daemon killed then could not mark it.
func (f *fleet) expectDone(l quota.Claims, charts []catalog.Chart, from, to time.Time,
	check func(tick string)) (ticks int) {
	f.Helper()
	whole := make(map[string]bool)
	for _, chart := range charts {
		whole[chart.Run] = whole[chart.Run] || !chart.CompletedAt.IsZero()
	}
	lanes, err := f.cfg.Lanes()
	must(f, err)
	for _, lane := range lanes {
		for tick := range lane.Ticks(from, to) {
			if f.overtaken(tick.ID()) {
				continue
			}
			ticks++
			state, err := l.Claim(f.Context(),
				quota.Claim{Credential: "key1", Name: tick.ID(), Holder: "test", TTL: time.Minute})
			if err != nil || state != quota.ClaimDone && !whole[tick.ID()] {
				f.Errorf("%s is not done: %v, %v", tick.ID(), state, err)
			}
			check(tick.ID())
		}
	}
	return ticks
}

// overtaken reports whether a daemon skipped the tick because its lane was five leases late, as can
// happen on a busy machine.
func (f *fleet) overtaken(tick string) bool {
	return f.logged(`a later one is due" tick=` + regexp.QuoteMeta(tick) + "\n")
}

// expectWindows checks the ledger's entries against the limit of any five seconds, and returns
// their sum.
func (f *fleet) expectWindows(l *ledger.Ledger, units int64) (sum int64) {
	f.Helper()
	entries, err := l.Entries(f.Context(), quota.Query{Credential: "key1",
		Bucket: quota.DefaultBucket})
	must(f, err)
	var inside int64
	first := 0
	for _, e := range entries {
		sum += e.Units
		inside += e.Units
		for ; !entries[first].At.After(e.At.Add(-5 * time.Second)); first++ {
			inside -= entries[first].Units
		}
		if inside > units {
			f.Errorf("%d units in the five seconds to %v", inside, e.At)
		}
	}
	return sum
}

// TestCrashes: three daemons on one Redis and one catalogue, one of them killed every one to three
// seconds. Every tick runs exactly once. The only pages bought twice are those in flight when their
// buyer was killed. It runs alone: on two cores, the daemons of two such tests at once may be too
// slow for their schedule, and then never end the ticks that are behind.
func TestCrashes(t *testing.T) {
	const units = 10_000
	f := launch(t, units)
	from, to := f.crash()

	l, c := f.open()
	runs := make(map[string]int)
	var stored, whole int64
	charts := f.charts(c)
	for _, chart := range charts {
		stored += int64(chart.Pages)
		if !chart.CompletedAt.IsZero() {
			runs[chart.Run]++
			whole++
		}
	}
	for run, n := range runs {
		if n != 1 {
			t.Errorf("%s has %d charts", run, n)
		}
	}
	ticks := f.expectDone(l, charts, from, to, func(tick string) {
		if runs[tick] != 1 {
			t.Errorf("%s has %d charts", tick, runs[tick])
		}
	})
	charged, bought := f.expectWindows(l, units), f.standin.Counts().Total["default"]
	again, lost := f.expectNoneTwice(l, charts)
	asked := int64(len(f.asked()))
	t.Logf("%d kills, %d takeovers, %d ticks, %d charts of %d pages; %d units charged, "+
		"%d pages asked for, %d billed, %d asked for again after a kill", len(f.kills),
		f.takeovers(), ticks, whole, stored, charged, asked, bought, again)
	if asked != stored+int64(again+len(lost)) || bought < stored || bought > asked {
		t.Errorf("%d pages were requested, %d of them again; %d were billed, %d are stored", asked,
			again, bought, stored)
	}
	// A lost page may belong to a tick that was not due to be done yet, because a lane is up to
	// three seconds behind the schedule, or to one missed before the start, which the next tick
	// makes up for.
	for _, p := range lost {
		scheduled := p.tick[strings.LastIndex(p.tick, "/")+1:]
		if scheduled >= from.UTC().Format(time.RFC3339) &&
			scheduled < to.Add(-3*time.Second).UTC().Format(time.RFC3339) {
			t.Errorf("%v was asked for and is not there", p)
		}
	}
	// a kill ends one process with at most daemon.MaxRuns runs, each with one page in flight
	if most := int64(len(f.kills)) * daemon.MaxRuns; int64(again) > most || charged < asked ||
		charged-asked > most {
		t.Errorf("%d units were charged, %d pages were asked for", charged, asked)
	}
	if ticks < 10 { // of about 40; a busy machine does fewer
		t.Errorf("only %d ticks", ticks)
	}
}

// page is one of the two pages of a tick's chart.
type page struct {
	tick  string
	first bool
}

// expectNoneTwice checks every requested page against the catalogue. A stored page is not requested
// again. A page that is not stored is requested again only after a kill, or if a daemon that
// stalled on a busy machine lost its lease. It returns the number of repeated requests, and of
// requested pages that are not stored. A request belongs to the last tick charged in its region,
// because lanes do not overlap themselves.
func (f *fleet) expectNoneTwice(l *ledger.Ledger, charts []catalog.Chart) (again int, lost []page) {
	f.Helper()
	entries, err := l.Entries(f.Context(), quota.Query{Credential: "key1",
		Bucket: quota.DefaultBucket})
	must(f, err)
	stored := make(map[page]time.Time)
	for _, c := range charts {
		stored[page{c.Run, true}] = c.StartedAt
		if !c.CompletedAt.IsZero() {
			stored[page{c.Run, false}] = c.CompletedAt
		}
	}
	asked := make(map[page]time.Time)
	for _, r := range f.asked() {
		p := page{first: r.first}
		for _, e := range entries {
			if e.Labels[quota.LabelRegion] == r.region && !e.At.After(r.at) {
				p.tick = e.Labels[quota.LabelRun]
			}
		}
		if since, there := stored[p]; there && r.at.After(since) {
			f.Errorf("%v: requested at %v, stored since %v", p, r.at, since)
		}
		if before, ok := asked[p]; ok {
			again++
			if !slices.ContainsFunc(f.kills, func(kill time.Time) bool {
				return kill.After(before) && kill.Before(r.at)
			}) && !f.logged(regexp.QuoteMeta(p.tick)+` .*cause="the lease was lost"`) {
				f.Errorf("%v: requested at %v and at %v without a kill in between", p, before,
					r.at)
			}
		}
		asked[p] = r.at
	}
	for p := range asked {
		if _, there := stored[p]; !there {
			lost = append(lost, p)
		}
	}
	return again, lost
}

// TestCrashesWhenShort is TestCrashes with fewer units than the schedule needs. No limit is
// exceeded, and every tick is done, possibly by a denial.
func TestCrashesWhenShort(t *testing.T) {
	const units = 12 // of 16 that the schedule needs
	f := launch(t, units)
	from, to := f.crash()
	l, c := f.open()
	charts := f.charts(c)
	ticks := f.expectDone(l, charts, from, to, func(string) {})
	charged, bought := f.expectWindows(l, units), f.standin.Counts().Total["default"]
	again, _ := f.expectNoneTwice(l, charts)
	asked := int64(len(f.asked()))
	t.Logf("%d kills, %d takeovers, %d ticks, %d units charged, %d pages asked for, %d billed, "+
		"%d asked for again", len(f.kills), f.takeovers(), ticks, charged, asked, bought, again)
	if most := int64(len(f.kills)) * daemon.MaxRuns; bought > asked || int64(again) > most ||
		charged < asked || charged-asked > most {
		t.Errorf("%d units were charged, %d pages were asked for, %d billed", charged, asked,
			bought)
	}
}
