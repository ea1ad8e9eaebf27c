package daemon

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// lane sees the ticks of one lane through.
type lane struct {
	*Daemon
	share.Lane
	work    *Work
	index   int       // among the lanes of work
	since   time.Time // when its ticks came into force
	missed  []missed  // to be caught up first
	catchUp *turns    // one at a time does that
	turn    *turn     // of it, while the first attempt has not been made
	unheard bool      // the ledger did not answer at the beginning

	recorded chan time.Time // see newRecorded
}

// missed is a tick that is to be run late.
type missed struct {
	schedule.Tick
	lost bool // in a crash; else it stands for all that were missed while no daemon was there
}

// behind is how many leases late a tick may run although a later one is due too. A crash, and then
// a crash of who took over, make a tick late by two.
const behind = 5

// begin finds where the lane goes on: after the last tick that this process has handled, else after
// those that were missed. It is called for one lane after the other, so that each knows of all the
// others how many ticks they have to come.
func (l *lane) begin(ctx context.Context) {
	since := l.since
	if m, ok := l.settled(l.Lane); ok {
		if m.lane.Spec() == l.Spec() {
			l.settle(l.Lane, m.until.Add(l.Offset-m.lane.Offset)) // of the same ticks of the schedule
			return
		}
		// Its ticks of before now never were. One of the old schedule that has come, and waits for
		// its turn, is not lost.
		if tick := m.lane.Next(m.until); !tick.At.After(since) {
			l.missed = []missed{{tick, true}}
		}
		l.settle(l.Lane, since)
		return
	}
	l.settle(l.Lane, since)
	var err error
	if l.missed, err = l.find(ctx, since); err != nil {
		l.catalogue.failed(err)
		l.Log.Debug("cannot tell which ticks were missed: none is made up for", "lane", l.Name(), "error", err)
	}
	if len(l.missed) > 0 {
		l.settle(l.Lane, l.missed[0].At.Add(-time.Nanosecond))
		l.turn = l.catchUp.join(l.stale(ctx))
	}
}

// find are the ticks before now that are to run: the last one, if the region's chart is older, in
// the place of all that were missed while no daemon was there; and each one of a short while ago
// that came while one was and has no complete chart, because it may have been lost in a crash.
// Those that are done all the same, by a denial, have a claim that says so.
func (l *lane) find(ctx context.Context, now time.Time) ([]missed, error) {
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
	var ticks []missed // newest first
	tick, ok := l.Prev(now)
	for n := 0; ok && (n == 0 || n < chartsRead && now.Sub(tick.At) < behind*l.work.Lease); n++ {
		whole, lost := complete[tick.ID()]
		if !whole && !lost {
			lost = l.wasRecorded(ctx, tick)
		}
		if !whole && (lost || n == 0 && l.work.CatchUp && newest.Before(tick.At)) {
			ticks = append(ticks, missed{tick, lost})
		}
		tick, ok = l.Prev(tick.At.Add(-time.Nanosecond))
	}
	slices.Reverse(ticks)
	return ticks, nil
}

// run sees the lane's ticks through until ticks ends; see loop.
func (l *lane) run(ticks, ctx context.Context) {
	from := l.until()
	if len(l.missed) > 0 { // those are recorded, or came while no daemon ran
		from = l.since
	}
	recorder := *l
	var recording sync.WaitGroup
	recording.Go(func() { recorder.recordTicks(ticks, from) })
	if l.unheard {
		listener := *l
		recording.Go(func() { listener.hear(ticks) })
	}
	l.loop(ticks, ctx)
	recording.Wait()
	l.forget()
}

// loop runs until ticks ends: first what was missed, then each tick when it comes. Runs under way
// end by themselves, or soon after ctx has ended.
func (l *lane) loop(ticks, ctx context.Context) {
	for _, tick := range l.missed {
		if !l.runLate(ticks, ctx, tick) {
			return
		}
		l.settle(l.Lane, tick.At)
	}
	if len(l.missed) > 0 {
		l.settle(l.Lane, l.since)
	}
	for from := l.until(); ticks.Err() == nil; l.settle(l.Lane, from) {
		l.refresh()
		tick := l.Next(from)
		if !l.await(ticks, tick) {
			return
		}
		switch {
		case l.superseded(tick):
			l.leaveOut(ctx, tick)
		case l.overtaken(tick):
			l.Log.Warn("tick left out: the lane is behind and a later one is due", "tick", tick.ID())
			l.Metrics.sweeps.WithLabelValues(overtaken).Inc()
		case !l.runTick(ticks, ctx, tick, false):
			if ctx.Err() != nil {
				l.leaveOutWaiting(tick)
			}
			return
		}
		from = tick.At
	}
}

// until is how far the lane has come.
func (l *lane) until() time.Time {
	m, _ := l.settled(l.Lane)
	return m.until
}

// runLate runs a missed tick. One that stands for many is given up when the lane's next one comes,
// which fetches the same: a region that hangs must not keep the others waiting for their turn to
// catch up.
func (l *lane) runLate(ticks, ctx context.Context, tick missed) bool {
	if tick.lost {
		return l.runTick(ticks, ctx, tick.Tick, true)
	}
	waiting, cancel := context.WithDeadline(ticks, l.Next(l.since).At)
	defer cancel()
	return l.runTick(waiting, ctx, tick.Tick, true) || ticks.Err() == nil
}

// await waits for the tick, and a little longer if there is jitter. It is false when ticks ends
// first.
func (l *lane) await(ticks context.Context, tick schedule.Tick) bool {
	wait := time.Until(tick.At)
	if l.work.Jitter > 0 && wait > 0 {
		wait += rand.N(l.work.Jitter)
	}
	return pause(ticks, wait)
}

// overtaken reports whether the tick is late, and the next one is due too.
func (l *lane) overtaken(tick schedule.Tick) bool {
	late := time.Since(tick.At) - l.work.Jitter
	return late > behind*l.work.Lease && !l.Next(tick.At).At.After(time.Now())
}

// superseded reports whether the lane's next tick came while something that every tick needs was
// away: the last one that did is run in the place of all that were missed.
func (l *lane) superseded(tick schedule.Tick) bool {
	next := l.Next(tick.At).At
	return !next.After(time.Now()) &&
		(l.upstream.covers(next) || l.catalogue.covers(next) || l.ledger.covers(next))
}

// leaveOutWaiting marks the superseded ticks from one on done when the daemon ends in an outage:
// the next one would take each of them for one that was lost in a crash, and run it.
func (l *lane) leaveOutWaiting(tick schedule.Tick) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	for ctx.Err() == nil && l.superseded(tick) {
		if _, cause := l.ledger.away(); cause != nil {
			return
		}
		l.leaveOut(ctx, tick)
		tick = l.Next(tick.At)
	}
}

// leaveOut marks a superseded tick done, so that it is not taken for one that was lost in a crash.
func (l *lane) leaveOut(ctx context.Context, tick schedule.Tick) {
	l.Metrics.sweeps.WithLabelValues(overtaken).Inc()
	l.Log.Debug("tick left out: a later one came during an outage", "tick", tick.ID())
	if time.Since(tick.At) > behind*l.work.Lease { // nobody looks back so far
		return
	}
	if claimed, err := l.claim(ctx, tick); err == nil && claimed == quota.ClaimWon {
		l.finish(ctx, tick, true)
	}
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
