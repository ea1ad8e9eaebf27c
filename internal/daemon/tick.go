package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// errLost ends a run whose lease another daemon may hold by now.
var errLost = errors.New("the lease was lost")

// settleTime bounds a ledger call at the end of a run.
const settleTime = 5 * time.Second

// result is the result of an attempt to run a tick.
type result int

const (
	retry result = iota // try again soon: no daemon is known to run the tick
	held                // another daemon holds the lane
	done                // some daemon has done the tick
)

// retryAfter returns the wait between two attempts.
func (c *Config) retryAfter() time.Duration { return min(c.Lease/3, 10*time.Second) }

// runTick returns true once any daemon has done the tick, and false if ticks ends first.
func (l *lane) runTick(ticks, ctx context.Context, tick schedule.Tick, missed bool) bool {
	defer l.endNext(ctx)
	for waited := false; ; {
		l.refresh()
		switch l.attempt(ticks, ctx, tick, missed, waited) {
		case done:
			return true
		case held:
			waited = true
		}
		wait := l.cfg.retryAfter()
		if l.isNext { // other daemons with late ticks are waiting
			wait = min(wait, time.Second)
		}
		if !quota.Pause(ticks, wait) {
			return false
		}
	}
}

// attempt runs a tick when it is the lane's turn, unless another daemon holds the lane or has
// done the tick.
func (l *lane) attempt(ticks, ctx context.Context, tick schedule.Tick, missed, waited bool) result {
	give, ok := l.turnFor(ticks, ctx, missed)
	if !ok {
		return retry
	}
	defer give()
	if !missed && l.superseded(tick) {
		l.leaveOut(ctx, tick)
		return done
	}
	var state quota.ClaimState
	var err error
	late := time.Since(tick.At)-l.policy().Jitter > l.cfg.retryAfter()
	if waited || late { // the tick is probably done: its mark shows that without a lease
		state, err = l.mark(ctx, tick)
	}
	// A daemon that waits for the lane tries every second, which is too rarely if there is almost
	// no gap between two runs.
	noGap := time.Since(l.freed) < 2*time.Second
	if (late || noGap) && err == nil && state != quota.ClaimDone {
		var free bool
		if free, err = l.mayLease(ctx, missed && waited); err == nil && !free {
			l.d.Log.Debug("another daemon will lease the lane next", "tick", tick.ID())
			return retry
		}
	}
	if err == nil && state != quota.ClaimDone {
		if state, err = l.lease(ctx); err == nil && state == quota.ClaimWon {
			l.endNext(ctx)
			defer func() {
				l.release(ctx, l.leaseClaim())
				l.freed = time.Now()
			}()
			state, err = l.mark(ctx, tick)
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return retry
	case err != nil:
		l.d.ledger.failed(err)
		l.d.Log.Debug("cannot claim tick, retrying", "tick", tick.ID(), "error", err)
		return retry
	}
	if !l.d.uncharged.Load() {
		l.d.ledger.works()
	}
	switch {
	case state == quota.ClaimDone:
		l.d.Log.Debug("tick is done by another daemon", "tick", tick.ID())
		return done
	case state == quota.ClaimHeld:
		l.d.Log.Debug("lane is leased by another daemon", "tick", tick.ID())
		l.freed = time.Now()
		return held
	case ticks.Err() != nil:
		return retry
	case waited && l.lastRun != tick.ID():
		l.d.Metrics.takeovers.Inc()
		l.d.Log.Info("tick taken over", "tick", tick.ID())
	default:
		l.d.Log.Info("tick claimed", "tick", tick.ID(), "missed", missed)
	}
	return l.runLeased(ctx, tick)
}

// turnFor waits until the lane may run. The caller calls give after the run. It returns false if
// ticks ends first.
func (l *lane) turnFor(ticks, ctx context.Context, missed bool) (give func(), ok bool) {
	if !l.policy().Queued {
		return func() {}, ticks.Err() == nil
	}
	mine := l.turn
	if l.turn = nil; mine == nil {
		mine = l.d.turns.join(l.Work.served(ctx, &l.Lane.Lane), missed)
	}
	if !l.d.turns.await(ticks, mine) {
		l.d.passProbes() // the turn may have come at the moment ticks ended
		return nil, false
	}
	return func() { l.d.turns.give(mine); l.d.passProbes() }, true
}

// runLeased runs a tick while it renews the lane's lease, and marks the tick done.
func (l *lane) runLeased(ctx context.Context, tick schedule.Tick) result {
	run, end := context.WithCancelCause(ctx)
	defer end(nil)
	// A run that finishes its page after ctx ends still needs the lease.
	hold, release := context.WithCancel(context.WithoutCancel(ctx))
	var renewing sync.WaitGroup
	renewing.Go(func() { l.renew(hold, end) })
	result := done
	if l.lastRun != tick.ID() { // otherwise only the mark is missing, and is tried again
		if result = l.process(run, tick); result == done {
			l.lastRun = tick.ID()
			if l.policy().SkipOverlap && context.Cause(run) != errLost {
				l.skipOverlapped(ctx, tick)
			}
		}
	}
	lost := context.Cause(run) == errLost
	release()
	renewing.Wait()
	switch {
	case lost:
		l.d.Log.Warn("lease lost: the run was ended", "tick", tick.ID())
		return held
	case result != done:
		l.d.Log.Info("tick given back", "tick", tick.ID())
	case !l.markDone(ctx, tick):
		return held // the next holder of the lane finds the chart
	}
	return result
}

// skipOverlapped marks the ticks that came during a run done. The lane is still leased, so no other
// daemon mistakes them for waiting ticks.
func (l *lane) skipOverlapped(ctx context.Context, after schedule.Tick) {
	now := time.Now()
	for tick := l.Next(after.At); !tick.At.After(now); tick = l.Next(tick.At) {
		if !l.markDone(ctx, tick) {
			return
		}
		l.d.Log.Warn("tick left out: the run before it was still under way", "tick", tick.ID())
		l.ended(ctx, tick, ending{outcome: overlaps})
	}
}

// leaseClaim returns the lease on the lane, which has the lane's name.
func (l *lane) leaseClaim() quota.Claim {
	return l.claim(l.Name(), l.d.Holder, l.cfg.Lease)
}

func (l *Lane) claim(name, holder string, ttl time.Duration) quota.Claim {
	return quota.Claim{Credential: l.Work.policy().Budget.Credential, Name: name, Holder: holder,
		TTL: ttl}
}

func (l *lane) lease(ctx context.Context) (quota.ClaimState, error) {
	began := time.Now()
	state, err := l.cfg.Claims.Claim(ctx, l.leaseClaim())
	if err == nil && state == quota.ClaimWon {
		l.leased.Store(&began)
	}
	return state, err
}

// leasedUntil returns when another daemon may lease the lane, unless this one renews its lease.
func (l *lane) leasedUntil() time.Time { return l.leased.Load().Add(l.cfg.Lease) }

// whileLeased keeps a run from making an attempt after its lease has ended. After a pause of the
// process or the machine, the run may continue before renew notices. It compares wall clocks,
// because only they advance while a machine sleeps.
func (l *lane) whileLeased(guard func(context.Context, func() error) error) func(context.Context,
	func() error) error {
	return func(ctx context.Context, attempt func() error) error {
		now, until := time.Now(), l.leasedUntil()
		if !now.Before(until) || !now.Round(0).Before(until.Round(0)) {
			return errLost
		}
		return guard(ctx, attempt)
	}
}

// release ends a claim of this daemon. If that fails, the claim lapses.
func (l *lane) release(ctx context.Context, claim quota.Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := l.cfg.Claims.Finish(ctx, claim, false); err != nil {
		l.d.Log.Debug("claim was not released: it lapses", "claim", claim.Name, "error", err)
	}
}

// nextClaim returns the claim to be the next to lease the lane.
func (l *lane) nextClaim(holder string, ttl time.Duration) quota.Claim {
	return l.claim(l.Name()+"/next", holder, ttl)
}

// mayLease reports whether this daemon may lease the lane for a late tick: no other daemon holds
// nextClaim. A daemon that waits with a missed tick makes that claim. Without it, while runs take
// longer than the interval, the daemon that releases the lane would lease it again at once for its
// next tick, and the waiting daemon would never get it.
func (l *lane) mayLease(ctx context.Context, waits bool) (bool, error) {
	if waits {
		state, err := l.cfg.Claims.Claim(ctx, l.nextClaim(l.d.Holder, 3*l.cfg.retryAfter()))
		l.isNext = err == nil && state == quota.ClaimWon
		return l.isNext, err
	}
	state, err := l.read(ctx, l.nextClaim(asksForMark, time.Second))
	return state != quota.ClaimHeld, err
}

func (l *lane) endNext(ctx context.Context) {
	if l.isNext {
		l.release(ctx, l.nextClaim(l.d.Holder, time.Second))
		l.isNext = false
	}
}

// renew renews the lease until ctx ends. It ends the run if renewing fails for the length of a
// lease, or another daemon holds the lease.
func (l *lane) renew(ctx context.Context, end context.CancelCauseFunc) {
	for quota.Pause(ctx, l.cfg.Lease/3) {
		ask, cancel := context.WithDeadline(ctx, l.leasedUntil())
		state, err := l.lease(ask)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && state == quota.ClaimWon:
		case err == nil, !time.Now().Before(l.leasedUntil()):
			end(errLost)
			return
		default:
			l.d.ledger.failed(err)
			l.d.Log.Debug("lease was not renewed, retrying", "lane", l.Name(), "error", err)
		}
	}
}
