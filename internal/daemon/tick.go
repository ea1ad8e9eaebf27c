package daemon

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// errLost ends a run whose lease another daemon may have by now.
var errLost = errors.New("the claim was lost")

// settleTime is how long the ledger is asked for at the end of a run.
const settleTime = 5 * time.Second

// lookAgain is how soon, at the latest, a tick is looked at again that is another daemon's or could
// not be claimed.
const lookAgain = 10 * time.Second

// state is how a tick stands after an attempt.
type state int

const (
	open state = iota // nobody is known to have it: try again soon
	held              // by another daemon
	done
)

// runTick returns true when the tick is done, by whomever, and false when ticks ended before.
func (l *lane) runTick(ticks, ctx context.Context, tick schedule.Tick, missed bool) bool {
	if !missed { // recordTicks may not have come to it, and the next moment may be a crash
		if err := l.recordTick(ctx, tick); err != nil {
			l.Log.Debug("tick was not recorded", "tick", tick.ID(), "error", err)
		}
	}
	for waited := false; ; {
		l.refresh()
		switch l.attempt(ticks, ctx, tick, missed, waited) {
		case done:
			return true
		case held:
			waited = true
		}
		if !pause(ticks, min(l.work.Lease/3, lookAgain)) {
			return false
		}
	}
}

// turnFor waits until the lane may run; give is called when it has. It is false when ticks ends
// first.
func (l *lane) turnFor(ticks, ctx context.Context, missed bool) (give func(), ok bool) {
	stale := l.stale(ctx)
	give = l.turns.give
	if missed {
		mine := l.turn
		if l.turn = nil; mine == nil {
			mine = l.catchUp.join(stale)
		}
		if !l.catchUp.await(ticks, mine) {
			return nil, false
		}
		give = func() { l.turns.give(); l.catchUp.give() }
	}
	if !l.turns.await(ticks, l.turns.join(stale)) {
		if missed {
			l.catchUp.give()
		}
		return nil, false
	}
	return give, true
}

// passProbes lets another lane probe if this one did not come to it. While upstream and catalogue
// are both away none can probe the upstream: each would try in turn, and log it.
func (l *lane) passProbes() {
	_, noUpstream := l.upstream.away()
	_, noCatalogue := l.catalogue.away()
	if noUpstream == nil || noCatalogue == nil {
		l.upstream.pass()
		l.catalogue.pass()
	}
}

// attempt claims a tick and runs it, unless another daemon has it or has done it.
func (l *lane) attempt(ticks, ctx context.Context, tick schedule.Tick, missed, waited bool) state {
	give, ok := l.turnFor(ticks, ctx, missed)
	if !ok {
		l.passProbes() // the turn may have come in the moment that ticks ended
		return open
	}
	defer func() {
		give()
		l.passProbes()
	}()
	if !missed && l.superseded(tick) {
		l.leaveOut(ctx, tick)
		return done
	}
	claimed, err := l.claim(ctx, tick)
	switch {
	case err != nil && ctx.Err() != nil:
		return open
	case err != nil:
		l.ledger.failed(err)
		l.Log.Debug("cannot claim tick, retrying", "tick", tick.ID(), "error", err)
		return open
	}
	if !l.uncharged.Load() {
		l.ledger.works()
	}
	switch claimed {
	case quota.ClaimDone:
		l.Log.Debug("tick is done by another", "tick", tick.ID())
		return done
	case quota.ClaimHeld:
		l.Log.Debug("tick is held by another", "tick", tick.ID())
		return held
	}
	if ticks.Err() != nil {
		l.finish(ctx, tick, false)
		return open
	}
	if claimed, err = l.work.Claims.Claim(ctx, l.laneClaim()); err != nil || claimed != quota.ClaimWon {
		l.Log.Info("another tick of the lane is still under way", "tick", tick.ID(), "error", err)
		l.finish(ctx, tick, false)
		return open
	}
	defer l.releaseLane(ctx)
	switch {
	case waited:
		l.Metrics.takeovers.Inc()
		l.Log.Info("tick taken over", "tick", tick.ID())
	default:
		l.Log.Info("tick claimed", "tick", tick.ID(), "missed", missed)
	}
	return l.runClaimed(ctx, tick)
}

// hear asks the ledger, which was away when the lane began, until it answers again: the next tick
// that would find out may be hours away.
func (l *lane) hear(ctx context.Context) {
	question := l.laneClaim()
	question.Name += "/asked"
	for pause(ctx, min(l.work.Lease/3, lookAgain)) {
		if _, cause := l.ledger.away(); cause == nil {
			return
		}
		if l.uncharged.Load() { // a run will say
			continue
		}
		state, err := l.work.Claims.Claim(ctx, question)
		if err == nil && state == quota.ClaimWon {
			err = l.work.Claims.Finish(ctx, question, false)
		}
		if err == nil {
			l.ledger.works()
		}
	}
}

// runClaimed runs a tick under its claim, and settles that.
func (l *lane) runClaimed(ctx context.Context, tick schedule.Tick) state {
	run, end := context.WithCancelCause(ctx)
	// A run that finishes its page after the end of ctx is still a run.
	hold, release := context.WithCancel(context.WithoutCancel(ctx))
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		l.renew(hold, tick, end)
	}()
	result := l.process(run, tick)
	lost := context.Cause(run) == errLost
	end(nil)
	release()
	<-renewed
	if lost {
		l.Log.Warn("claim lost: the run was ended", "tick", tick.ID())
		return held
	}
	if !l.finish(ctx, tick, result == done) {
		return held // whoever has it now finds the chart
	}
	return result
}

func (l *lane) claim(ctx context.Context, tick schedule.Tick) (quota.ClaimState, error) {
	return l.work.Claims.Claim(ctx, l.tickClaim(tick, l.work.Lease))
}

// laneClaim is held beside that of the tick that runs: after a crash two ticks of a lane may be due
// at once, and a job does not overlap itself.
func (l *lane) laneClaim() quota.Claim {
	return quota.Claim{Credential: l.work.Sweep.Budget.Credential, Name: l.Name(), Holder: l.Holder, TTL: l.work.Lease}
}

// releaseLane gives the lane back. Where that fails, it is free when the lease lapses.
func (l *lane) releaseLane(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := l.work.Claims.Finish(ctx, l.laneClaim(), false); err != nil {
		l.Log.Debug("lane was not given back: its lease lapses", "lane", l.Name(), "error", err)
	}
}

func (l *lane) tickClaim(tick schedule.Tick, ttl time.Duration) quota.Claim {
	return quota.Claim{Credential: l.work.Sweep.Budget.Credential, Name: tick.ID(), Holder: l.Holder, TTL: ttl}
}

// renew keeps the lease until ctx ends. When that does not succeed for a lease, or another has it,
// the run is ended.
func (l *lane) renew(ctx context.Context, tick schedule.Tick, end context.CancelCauseFunc) {
	for last := time.Now(); pause(ctx, l.work.Lease/3); {
		asked := time.Now()
		ask, cancel := context.WithDeadline(context.WithoutCancel(ctx), last.Add(l.work.Lease))
		stop := context.AfterFunc(ctx, cancel)
		state, err := l.claim(ask, tick)
		if err == nil && state == quota.ClaimWon {
			state, err = l.work.Claims.Claim(ask, l.laneClaim())
		}
		stop()
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && state == quota.ClaimWon:
			last = asked
		case err == nil, time.Since(last) >= l.work.Lease:
			end(errLost)
			return
		default:
			l.ledger.failed(err)
			l.Log.Debug("claim was not renewed, retrying", "tick", tick.ID(), "error", err)
		}
	}
}

// finish marks the tick done, or gives it back; it reports whether the claim was still held.
func (l *lane) finish(ctx context.Context, tick schedule.Tick, done bool) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	err := l.work.Claims.Finish(ctx, l.tickClaim(tick, l.remembered(tick)), done)
	if err != nil {
		level := slog.LevelError
		if _, cause := l.ledger.away(); cause != nil { // which was told
			level = slog.LevelDebug
		}
		l.Log.Log(ctx, level, "claim was not settled: its lease lapses", "tick", tick.ID(), "done", done, "error", err)
	} else if !done {
		l.Log.Info("tick given back", "tick", tick.ID())
	}
	return err == nil
}

// remembered is how long a tick is known to be done: longer than anybody looks back for it.
func (l *lane) remembered(tick schedule.Tick) time.Duration {
	gap := l.Next(tick.At).At.Sub(tick.At)
	return min(2*gap+2*behind*l.work.Lease+time.Hour, quota.MaxWindow)
}
