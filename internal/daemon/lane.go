package daemon

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// lane runs the ticks of one region of a job, in their order.
type lane struct {
	share.Lane
	d       *Daemon
	cfg     *Config
	index   int       // in cfg.Lanes
	since   time.Time // when its ticks came into force
	begun   bool
	missed  []missed     // to be run first
	catchUp *turns       // of the lanes that missed ticks: one at a time runs them
	turn    *turn        // in catchUp, until the first attempt
	marked  atomic.Int64 // the newest tick that is marked, in Unix ns
	// the tick that runs came while no daemon ran: it is marked only when it is done
	unmarked bool
}

type missed struct {
	schedule.Tick
	lost bool // in a crash; else it runs for all that were missed while no daemon ran
}

// maxLate is how many leases late a tick may run although a later one is due, too. A crash, and
// then a crash of the daemon that took over, make a tick late by two.
const maxLate = 5

// begin finds where the lane starts: after the last tick that this process has done, else after
// those that were missed. It is called for one lane after the other, so that each knows how many
// ticks all the others have to come.
func (l *lane) begin(ctx context.Context) {
	l.begun = true
	if p, ok := l.d.progressOf(l.Lane); ok {
		l.succeed(p)
		return
	}
	l.d.recordDone(l.Lane, l.since)
	var err error
	if l.missed, err = l.findMissed(ctx, l.since); err != nil {
		l.d.catalogue.failed(err)
		l.d.Log.Debug("cannot find which ticks were missed: none is made up for",
			"lane", l.Name(), "error", err)
	}
	if len(l.missed) > 0 {
		l.d.recordDone(l.Lane, l.missed[0].At.Add(-time.Nanosecond))
		l.turn = l.catchUp.join(l.lastChart(ctx))
	}
}

// succeed starts where the lane of another configuration ended.
func (l *lane) succeed(before progress) {
	if before.lane.Spec() == l.Spec() { // the same ticks of the schedule
		l.d.recordDone(l.Lane, before.until.Add(l.Offset-before.lane.Offset))
		return
	}
	// A tick of the old schedule that has come, and waits for its turn, is not lost. Those of the
	// new one before now never were.
	if tick := before.lane.Next(before.until); !tick.At.After(l.since) {
		l.missed = []missed{{tick, true}}
	}
	l.d.recordDone(l.Lane, l.since)
}

// findMissed returns the ticks before now that are to run: the last one, if the region's chart is
// older, for all that were missed while no daemon ran; and each one of a short while ago that came
// while a daemon ran and has no complete chart, because it may have been lost in a crash. Those
// that are done all the same, by a denial, are marked done.
func (l *lane) findMissed(ctx context.Context, now time.Time) ([]missed, error) {
	charts, err := l.charts(ctx)
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
	for n := 0; ok && (n == 0 || n < chartsRead && now.Sub(tick.At) < maxLate*l.cfg.Lease); n++ {
		whole, lost := complete[tick.ID()]
		if !whole && !lost {
			lost = l.wasMarked(ctx, tick)
		}
		if !whole && (lost || n == 0 && l.cfg.CatchUp && newest.Before(tick.At)) {
			ticks = append(ticks, missed{tick, lost})
		}
		tick, ok = l.Prev(tick.At.Add(-time.Nanosecond))
	}
	slices.Reverse(ticks)
	return ticks, nil
}

// chartsRead is how many of a region's newest charts are searched for that of a tick.
const chartsRead = 50

func (l *lane) charts(ctx context.Context) ([]catalog.Chart, error) {
	key := catalog.ChartKey{Region: l.Region}
	return l.cfg.Sweep.Catalog.Charts(context.WithoutCancel(ctx), key, chartsRead)
}

func (l *lane) lastChart(ctx context.Context) time.Time {
	states, err := l.cfg.Sweep.Catalog.Staleness(context.WithoutCancel(ctx), []string{l.Region})
	if err != nil {
		return time.Time{}
	}
	return states[0].CompletedAt
}

// run runs the lane's ticks until ticks ends. Runs under way end by themselves, or soon after ctx
// has ended.
func (l *lane) run(ticks, ctx context.Context) {
	from := l.until()
	if len(l.missed) > 0 { // those are marked, or came while no daemon ran
		from = l.since
	}
	var marking sync.WaitGroup
	configured := l.Lane
	marking.Go(func() { l.d.markTicks(ticks, configured, from, &l.marked) })
	l.loop(ticks, ctx)
	marking.Wait()
	l.forget()
}

func (l *lane) loop(ticks, ctx context.Context) {
	for _, tick := range l.missed {
		if !l.runLate(ticks, ctx, tick) {
			return
		}
		l.d.recordDone(l.Lane, tick.At)
	}
	if len(l.missed) > 0 {
		l.d.recordDone(l.Lane, l.since)
	}
	for from := l.until(); ticks.Err() == nil; l.d.recordDone(l.Lane, from) {
		l.refresh()
		tick := l.Next(from)
		if !l.await(ticks, tick) {
			return
		}
		switch {
		case l.superseded(tick):
			l.leaveOut(ctx, tick)
		case l.late(tick):
			l.d.Log.Warn("tick left out: the lane is behind and a later one is due",
				"tick", tick.ID())
			l.d.Metrics.sweeps.WithLabelValues(overtaken).Inc()
		case !l.runTick(ticks, ctx, tick, false):
			if ctx.Err() != nil {
				l.leaveOutWaiting(tick)
			}
			return
		}
		from = tick.At
	}
}

func (l *lane) until() time.Time {
	p, _ := l.d.progressOf(l.Lane)
	return p.until
}

// runLate runs a missed tick. One that runs for many is given up when the lane's next one comes,
// which fetches the same: a region that hangs must not keep the others from catching up.
func (l *lane) runLate(ticks, ctx context.Context, tick missed) bool {
	if tick.lost {
		return l.runTick(ticks, ctx, tick.Tick, true)
	}
	waiting, cancel := context.WithDeadline(ticks, l.Next(l.since).At)
	defer cancel()
	l.unmarked = true
	defer func() { l.unmarked = false }()
	return l.runTick(waiting, ctx, tick.Tick, true) || ticks.Err() == nil
}

// await waits for the tick, and a little longer if there is jitter. It is false when ticks ends
// first.
func (l *lane) await(ticks context.Context, tick schedule.Tick) bool {
	wait := time.Until(tick.At)
	if l.cfg.Jitter > 0 && wait > 0 {
		wait += rand.N(l.cfg.Jitter)
	}
	return pause(ticks, wait)
}

// late reports whether the tick is too late to run, because the next one is due, too.
func (l *lane) late(tick schedule.Tick) bool {
	late := time.Since(tick.At) - l.cfg.Jitter
	return late > maxLate*l.cfg.Lease && !l.Next(tick.At).At.After(time.Now())
}

// superseded reports whether the lane's next tick came during an outage: the last one that did runs
// for all that were missed.
func (l *lane) superseded(tick schedule.Tick) bool {
	next := l.Next(tick.At).At
	return !next.After(time.Now()) &&
		(l.d.upstream.covers(next) || l.d.catalogue.covers(next) || l.d.ledger.covers(next))
}

// leaveOut marks a superseded tick done: else it would be taken for one that was lost in a crash.
func (l *lane) leaveOut(ctx context.Context, tick schedule.Tick) {
	l.d.Metrics.sweeps.WithLabelValues(overtaken).Inc()
	l.d.Log.Debug("tick left out: a later one came during an outage", "tick", tick.ID())
	if time.Since(tick.At) > maxLate*l.cfg.Lease { // nobody looks back so far
		return
	}
	if state, err := l.mark(ctx, tick); err == nil && state == quota.ClaimWon {
		l.markDone(ctx, tick)
	}
}

// leaveOutWaiting leaves out the superseded ticks from one on when the daemon ends in an outage.
func (l *lane) leaveOutWaiting(tick schedule.Tick) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	for ctx.Err() == nil && l.superseded(tick) {
		if _, cause := l.d.ledger.away(); cause != nil {
			return
		}
		l.leaveOut(ctx, tick)
		tick = l.Next(tick.At)
	}
}

// pause waits for a while. It is false when ctx ends first.
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
