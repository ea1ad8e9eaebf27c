package daemon

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/schedule"
)

// lane sees the ticks of one lane through.
type lane struct {
	*Daemon
	Lane
	work    *Work
	index   int             // among the lanes of work
	since   time.Time       // when work came into force
	missed  []schedule.Tick // to be caught up first
	catchUp *turns          // one at a time does that
	turn    *turn           // of it, while the first attempt has not been made
}

// behind is how many leases late a tick may run although a later one is due too. A crash, and then a crash of who took over,
// make a tick late by two.
const behind = 5

// begin finds where the lane goes on at a moment: after the last tick that this process has handled, else after those that were
// missed. It is called for one lane after the other, so that each knows of all the others how many ticks they have to come.
func (l *lane) begin(ctx context.Context, since time.Time) {
	l.since = since
	if m, ok := l.settled(l.Lane); ok {
		if m.spec != l.spec() { // its ticks of before now never were
			l.settle(l.Lane, since)
		}
		return
	}
	l.settle(l.Lane, since)
	var err error
	if l.missed, err = l.find(ctx, since); err != nil {
		l.Log.Error("what was missed cannot be known", "lane", l.name(), "error", err)
	}
	if len(l.missed) > 0 {
		l.settle(l.Lane, l.missed[0].At.Add(-time.Nanosecond))
		l.turn = l.catchUp.join(l.stale(ctx))
	}
}

// find are the ticks before now that are to run: the last one, if the region's chart is older, in the place of all that were
// missed while no daemon was there; but each one of a short while ago, if the lane was served then, because it may have been lost
// in a crash. Those that are done all the same, without a chart, have a claim that says so.
func (l *lane) find(ctx context.Context, now time.Time) ([]schedule.Tick, error) {
	charts, err := l.work.Sweep.Catalog.Charts(ctx, catalog.ChartKey{Region: l.Region}, chartsRead)
	if err != nil {
		return nil, err
	}
	complete := make(map[string]bool) // of the ticks that have a chart
	var newest time.Time
	for _, c := range charts {
		complete[c.Run] = complete[c.Run] || !c.CompletedAt.IsZero()
		if c.CompletedAt.After(newest) {
			newest = c.CompletedAt
		}
	}
	var recent []schedule.Tick // newest first, at least one
	first := -1                // of them that has a chart
	tick, ok := l.Prev(now)
	for n := 0; ok && (n == 0 || n < chartsRead && now.Sub(tick.At) < behind*l.work.Lease); n++ {
		if _, begun := complete[tick.ID()]; begun {
			first = n
		}
		recent = append(recent, tick)
		tick, ok = l.Prev(tick.At.Add(-time.Nanosecond))
	}
	var ticks []schedule.Tick
	later := false // a tick after this one has a chart
	for n, tick := range recent {
		whole, begun := complete[tick.ID()]
		served := l.work.CatchUp && n < first // a short while ago, and not since
		due := n == 0 && l.work.CatchUp && newest.Before(tick.At)
		if !whole && (begun || later || served || due) {
			ticks = append(ticks, tick)
		}
		later = later || begun
	}
	slices.Reverse(ticks)
	return ticks, nil
}

// loop runs until ticks ends: first what was missed, then each tick when it comes. Runs under way end by themselves, or soon
// after ctx has ended.
func (l *lane) loop(ticks, ctx context.Context) {
	for _, tick := range l.missed {
		if !l.see(ticks, ctx, tick, true) {
			return
		}
		l.settle(l.Lane, tick.At)
	}
	if len(l.missed) > 0 {
		l.settle(l.Lane, l.since)
	}
	m, _ := l.settled(l.Lane)
	for from := m.until; ticks.Err() == nil; l.settle(l.Lane, from) {
		tick := l.Next(from)
		if !l.await(ticks, tick) {
			return
		}
		switch {
		case l.overtaken(tick):
			l.Log.Warn("tick left out: the lane is behind and a later one is due", "tick", tick.ID())
			l.Metrics.sweeps.WithLabelValues(overtaken).Inc()
		case !l.see(ticks, ctx, tick, false):
			return
		}
		from = tick.At
	}
}

// await waits for the tick, and a little longer if there is jitter. It is false when ticks ends first.
func (l *lane) await(ticks context.Context, tick schedule.Tick) bool {
	wait := time.Until(tick.At)
	if l.work.Jitter > 0 && wait > 0 {
		wait += rand.N(l.work.Jitter)
	}
	return pause(ticks, wait)
}

// overtaken reports whether the tick is late, and the next one is due too.
func (l *lane) overtaken(tick schedule.Tick) bool {
	late := time.Since(tick.At)
	return late > behind*l.work.Lease && !l.Next(tick.At).At.After(time.Now())
}

// stale is when the region's last complete chart was complete.
func (l *lane) stale(ctx context.Context) time.Time {
	states, err := l.work.Sweep.Catalog.Staleness(context.WithoutCancel(ctx), []string{l.Region})
	if err != nil {
		return time.Time{}
	}
	return states[0].CompletedAt
}

// pause waits for d. It is false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
