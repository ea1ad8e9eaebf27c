package daemon

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// lane runs the ticks of one lane of the configuration, in order.
type lane struct {
	Lane  // written with Daemon.mu locked
	d     *Daemon
	cfg   *Config
	since time.Time // when its schedule came into force
	until time.Time // end of the ticks that are done; written with Daemon.mu locked

	before  *lane         // the running lane that it replaces; nil for none
	stop    func()        // ends its ticks, but not its run; for Daemon.use
	stopped bool          // for Daemon.use
	done    chan struct{} // closed when it has ended

	missed []missed                  // run first; those that have not run yet
	recent *schedule.Tick            // tick just before the start, which may still be marked
	turn   *turn                     // of the first missed tick, until its first attempt
	leased atomic.Pointer[time.Time] // when the lane was last claimed successfully
	freed  time.Time                 // when the lane was last released, or found leased
	marked atomic.Int64              // the newest marked tick, in Unix ns
	isNext bool                      // this daemon holds nextClaim
	// ID of the last tick that this daemon ran to its end; its mark may be missing
	lastRun string
	// the current tick came while no daemon ran, so it is marked only when done
	unmarked bool
}

// continues reports whether the lane runs on, because a new configuration has the same ticks.
func (l *lane) continues(next share.Lane) bool {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	return !l.stopped && l.SameTicks(next)
}

func (l *lane) hasEnded() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// reach records that the ticks up to a moment are done.
func (l *lane) reach(until time.Time) {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	l.until = until
}

func (l *lane) reached() time.Time {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	return l.until
}

type missed struct {
	schedule.Tick
	lost bool // lost in a crash; otherwise it stands for all ticks missed while no daemon ran
}

// maxLate is how late, in leases, a tick may run when the next one is due. A crash, and another of
// the daemon that took over, delay a tick by two leases.
const maxLate = 5

// begin sets where a new lane starts: now, or at the ticks that were missed. The lanes begin one
// after another, so that each can count the waiting ticks of the others.
func (l *lane) begin(ctx context.Context) {
	l.reach(l.since)
	var err error
	if l.missed, err = l.findMissed(ctx, l.since); err != nil {
		l.d.catalogue.failed(err)
		l.d.Log.Debug("cannot find which ticks were missed: running none of them",
			"lane", l.Name(), "error", err)
	}
	if l.d.Missed != nil {
		l.reportMissed(ctx)
	}
	if len(l.missed) > 0 {
		l.reach(l.missed[0].At.Add(-time.Nanosecond))
		if l.policy().Queued {
			l.turn = l.d.turns.join(l.Work.served(ctx, &l.Lane.Lane), true)
		}
	}
}

func (l *lane) policy() Policy { return l.Work.policy() }

// succeed continues where the lane of the previous configuration ended, with the missed ticks that
// it has not run.
func (l *lane) succeed(before *lane) {
	l.missed, l.recent, l.lastRun = before.missed, before.recent, before.lastRun
	until := before.until
	if len(l.missed) > 0 {
		until = before.since
	}
	if before.Spec() == l.Spec() { // the same ticks of the schedule
		l.since = until.Add(l.Offset - before.Offset)
		l.reach(l.since)
		return
	}
	// A tick of the old schedule that waits for its turn still runs. Ticks of the new schedule
	// from before it was in force do not.
	if tick := before.Next(until); !tick.At.After(l.since) {
		l.missed = append(l.missed, missed{tick, true})
	}
	l.reach(l.since)
}

// findMissed returns the earlier ticks that must run now. One tick, the last, stands for all that
// came while no daemon ran, unless a newer one is complete. Recent ticks that came while a daemon
// ran may have been lost in a crash: each runs, unless it is complete or marked done.
func (l *lane) findMissed(ctx context.Context, now time.Time) ([]missed, error) {
	earlier, err := l.Work.earlier(ctx, l)
	if err != nil {
		return nil, err
	}
	var ticks []missed // newest first
	tick, ok := l.Prev(now)
	for n := 0; ok && (n == 0 || n < looksBack && now.Sub(tick.At) < maxLate*l.cfg.Lease); n++ {
		whole, lost := earlier.runs[tick.ID()]
		if !whole && !lost {
			lost = l.wasMarked(ctx, tick)
		}
		late := n == 0 && l.policy().CatchUp && earlier.newest.Before(tick.At)
		switch {
		case !whole && (lost || late):
			ticks = append(ticks, missed{tick, lost})
		case !whole && n == 0 && now.Sub(tick.At) < 2*markAfter:
			l.recent = new(tick)
		}
		tick, ok = l.Prev(tick.At.Add(-time.Nanosecond))
	}
	slices.Reverse(ticks)
	return ticks, nil
}

// looksBack is the maximum number of ticks that findMissed checks.
const looksBack = 50

// isLost adds the recent tick to the missed ones if another daemon has marked it but not run it
// yet, and reports whether it did.
func (l *lane) isLost(ticks, ctx context.Context) bool {
	if l.recent == nil || !pauseUntil(ticks, l.recent.At.Add(2*markAfter), time.Now) {
		return false
	}
	tick := *l.recent
	l.recent = nil
	if l.wasMarked(ctx, tick) {
		l.missed = []missed{{tick, true}}
	}
	return len(l.missed) > 0
}

// refresh applies the configuration in force. A lane that is gone or whose ticks have changed
// keeps its own.
func (l *lane) refresh() {
	c := l.d.inForce.Load()
	for _, next := range c.Lanes {
		if next.Name() == l.Name() && next.SameTicks(l.Lane.Lane) {
			l.d.mu.Lock()
			l.cfg, l.Lane = c, next
			l.d.mu.Unlock()
		}
	}
}

// run runs the lane's ticks until ticks ends. A run in progress finishes, or ends soon after ctx.
func (l *lane) run(ticks, ctx context.Context) {
	from := l.until
	if len(l.missed) > 0 { // missed ticks need no mark: they have one, or came while no daemon ran
		from = l.since
	}
	var marking sync.WaitGroup
	configured := l.Lane
	marking.Go(func() { l.d.markTicks(ticks, configured, from, &l.marked) })
	l.loop(ticks, ctx)
	marking.Wait()
}

func (l *lane) loop(ticks, ctx context.Context) {
	for len(l.missed) > 0 || l.isLost(ticks, ctx) {
		if !l.runLate(ticks, ctx, l.missed[0]) {
			return
		}
		l.reach(l.missed[0].At)
		if l.missed = l.missed[1:]; len(l.missed) == 0 {
			l.reach(l.since)
		}
	}
	for ticks.Err() == nil {
		l.refresh()
		until := l.reached()
		if now := time.Now(); until.Sub(now.Round(0)) > turnedBack {
			l.d.Log.Warn("the clock was turned back; running the lane's ticks from now on",
				"lane", l.Name(), "until", until)
			until = now
			l.reach(until)
		}
		tick := l.Next(until)
		at := tick.At
		if time.Until(at) > lookAgain { // then check the clock again
			quota.Pause(ticks, lookAgain)
			continue
		}
		if jitter := l.policy().Jitter; jitter > 0 && time.Until(at) > 0 {
			at = at.Add(rand.N(jitter))
		}
		if !pauseUntil(ticks, at, time.Now) {
			return
		}
		switch {
		case l.superseded(tick):
			l.leaveOut(ctx, tick)
		case l.late(tick):
			l.d.Log.Warn("tick left out: the lane is behind and a later one is due",
				"tick", tick.ID())
			l.d.Metrics.ended(l, overtaken)
			l.missedTick(1, tick, "the lane was behind, and a later one was due")
		case !l.runTick(ticks, ctx, tick, false):
			if ctx.Err() != nil {
				l.leaveOutWaiting(tick)
			}
			return
		}
		l.reach(tick.At)
	}
}

// runLate runs a missed tick. It gives up a tick that stands for many when the lane's next tick
// comes, which fetches the same chart, so that a region that hangs does not keep the others from
// catching up.
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

// late reports whether the tick is too late to run, because the next one is due too.
func (l *lane) late(tick schedule.Tick) bool {
	late := time.Since(tick.At) - l.policy().Jitter
	return late > maxLate*l.cfg.Lease && !l.Next(tick.At).At.After(time.Now())
}

// superseded reports whether a later tick of the lane came during the same outage. Only the last
// one runs.
func (l *lane) superseded(tick schedule.Tick) bool {
	next := l.Next(tick.At).At
	away := l.d.ledger.covers(next)
	if l.policy().Queued {
		away = away || l.d.upstream.covers(next) || l.d.catalogue.covers(next)
	}
	return away && !next.After(time.Now())
}

// leaveOut marks a superseded tick done, so that no daemon takes it for one lost in a crash.
func (l *lane) leaveOut(ctx context.Context, tick schedule.Tick) {
	l.d.Metrics.ended(l, overtaken)
	l.missedTick(1, tick, "ledger, upstream or catalogue was away")
	l.d.Log.Debug("tick left out: a later one came during an outage", "tick", tick.ID())
	if time.Since(tick.At) > maxLate*l.cfg.Lease { // beyond what findMissed checks
		return
	}
	if state, err := l.mark(ctx, tick); err == nil && state == quota.ClaimWon {
		l.markDone(ctx, tick)
	}
}

// leaveOutWaiting leaves out the superseded ticks when the daemon ends during an outage.
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

// lookAgain is the interval at which a pause checks the clock.
const lookAgain = 30 * time.Second

// turnedBack is how far a lane's last tick must be in the future before the daemon concludes that
// the clock was turned back. Otherwise the lane would wait until the clock reaches that tick again.
const turnedBack = 15 * time.Minute

// pauseUntil waits until the clock reaches at. It returns false if ctx ends first. A timer alone
// could be hours late: it stops while the machine sleeps, and ignores changes of the clock.
func pauseUntil(ctx context.Context, at time.Time, now func() time.Time) bool {
	for {
		left := at.Sub(now().Round(0)) // by the wall clock
		if left <= lookAgain {
			return quota.Pause(ctx, left)
		}
		if !quota.Pause(ctx, lookAgain) {
			return false
		}
	}
}
