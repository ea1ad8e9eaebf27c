package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// anyDaemon is the shared holder of tick marks: any daemon may set or finish them.
const anyDaemon = "any"

// asksForMark is the holder used to read a mark without setting it.
const asksForMark = "asks"

// markAfter is how long a tick may wait for its turn before it is marked. Most ticks run at once
// and are marked then.
const markAfter = time.Second

// markClaim returns the mark of a tick that came while a daemon ran. It outlasts findMissed.
func (c *Config) markClaim(l Lane, tick schedule.Tick) quota.Claim {
	gap := l.Next(tick.At).At.Sub(tick.At)
	ttl := min(2*gap+2*maxLate*c.Lease+time.Hour, quota.MaxWindow)
	return l.claim(tick.ID(), anyDaemon, ttl)
}

// mark sets a tick's mark. It returns ClaimDone if the tick is done, else ClaimWon, or ClaimHeld
// for a moment while another daemon reads the mark.
func (l *lane) mark(ctx context.Context, tick schedule.Tick) (quota.ClaimState, error) {
	if l.unmarked {
		state, err := l.markOf(ctx, tick)
		if state == quota.ClaimHeld { // marked already; this daemon has leased the lane
			state = quota.ClaimWon
		}
		return state, err
	}
	state, err := l.cfg.Claims.Claim(ctx, l.cfg.markClaim(l.Lane, tick))
	if err == nil && state != quota.ClaimHeld {
		l.marked.Store(tick.At.UnixNano())
	}
	return state, err
}

// markDone marks the tick done, and reports whether the ledger recorded it.
func (l *lane) markDone(ctx context.Context, tick schedule.Tick) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	claim := l.cfg.markClaim(l.Lane, tick)
	err := l.cfg.Claims.Finish(ctx, claim, true)
	if errors.Is(err, quota.ErrNoClaim) { // not marked yet, or done
		var state quota.ClaimState
		if state, err = l.cfg.Claims.Claim(ctx, claim); err == nil && state == quota.ClaimWon {
			err = l.cfg.Claims.Finish(ctx, claim, true)
		}
	}
	if err == nil {
		return true
	}
	level := slog.LevelError
	if _, cause := l.d.ledger.away(); cause != nil { // the outage is logged already
		level = slog.LevelDebug
	}
	l.d.Log.Log(ctx, level, "tick was not marked done", "tick", tick.ID(), "error", err)
	return false
}

// markTicks marks each tick of a lane after from as it comes, even during a run, until ctx ends.
// Without the marks, a daemon that starts after a crash could not distinguish waiting ticks from
// ticks that came while no daemon ran.
func (d *Daemon) markTicks(ctx context.Context, l Lane, from time.Time,
	marked *atomic.Int64) {
	for tick := l.Next(from); pauseUntil(ctx, tick.At.Add(markAfter), time.Now); {
		c := d.inForce.Load()
		if marked.Load() < tick.At.UnixNano() {
			state, err := c.Claims.Claim(ctx, c.markClaim(l, tick))
			if err != nil || state == quota.ClaimHeld {
				d.Log.Debug("tick was not marked, retrying", "tick", tick.ID(), "error", err)
				if !quota.Pause(ctx, c.retryAfter()) {
					return
				}
				continue
			}
		}
		tick = l.Next(tick.At)
	}
}

// markOf reads the mark of a tick: ClaimDone, ClaimHeld if it is not done, or ClaimWon if it is not
// marked. All daemons read as one holder, so that none mistakes another's read for a mark.
func (l *lane) markOf(ctx context.Context, tick schedule.Tick) (quota.ClaimState, error) {
	return l.read(ctx, l.claim(tick.ID(), asksForMark, time.Second))
}

// read returns the state of a claim. If it is free, read makes the claim, releases it at once, and
// returns ClaimWon.
func (l *lane) read(ctx context.Context, question quota.Claim) (quota.ClaimState, error) {
	state, err := l.cfg.Claims.Claim(ctx, question)
	if err == nil && state == quota.ClaimWon {
		err = l.cfg.Claims.Finish(ctx, question, false)
	}
	if errors.Is(err, quota.ErrNoClaim) { // another daemon released the claim
		err = nil
	}
	return state, err
}

// wasMarked reports whether a daemon ran when the tick came. It returns false if the ledger does
// not answer.
func (l *lane) wasMarked(ctx context.Context, tick schedule.Tick) bool {
	state, err := l.markOf(ctx, tick)
	if err != nil {
		l.d.ledger.failed(err)
		l.d.Log.Debug("cannot find whether a daemon was running when the tick came",
			"tick", tick.ID(), "error", err)
		return false
	}
	return state == quota.ClaimHeld
}
