package daemon

import (
	"context"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// recordTicks records in the ledger each tick that comes while this daemon runs, whatever the lane
// is doing: a daemon that starts after a crash could not tell those that waited from those that
// came while no daemon ran. It begins after from, and ends with ctx.
func (l *lane) recordTicks(ctx context.Context, from time.Time) {
	for tick := l.Next(from); pause(ctx, time.Until(tick.At)); {
		l.refresh()
		if err := l.recordTick(ctx, tick); err != nil {
			l.Log.Debug("tick was not recorded", "tick", tick.ID(), "error", err)
			if !pause(ctx, min(l.work.Lease/3, lookAgain)) {
				return
			}
			continue
		}
		tick = l.Next(tick.At)
	}
}

// newRecorded is for the moment of the last tick that was recorded. Who takes it out records, and
// puts it back.
func newRecorded() chan time.Time {
	last := make(chan time.Time, 1)
	last <- time.Time{}
	return last
}

// recordTick records that a tick came, unless this daemon has done so. Another daemon that does the
// same, or asks for it, holds the claim for a moment only.
func (l *lane) recordTick(ctx context.Context, tick schedule.Tick) (err error) {
	last := <-l.recorded
	defer func() { l.recorded <- last }()
	if !tick.At.After(last) {
		return nil
	}
	switch state, err := l.work.Claims.Claim(ctx, l.recordClaim(tick, l.work.Lease)); {
	case err != nil:
		return err
	case state == quota.ClaimHeld:
		return quota.ErrNoClaim
	case state == quota.ClaimWon:
		if err := l.work.Claims.Finish(ctx, l.recordClaim(tick, l.remembered(tick)), true); err != nil {
			return err
		}
	}
	last = tick.At
	return nil
}

// wasRecorded reports whether a daemon ran when the tick came. Where the ledger does not answer
// there was none, as far as anybody knows.
func (l *lane) wasRecorded(ctx context.Context, tick schedule.Tick) bool {
	claim := l.recordClaim(tick, l.work.Lease)
	state, err := l.work.Claims.Claim(ctx, claim)
	if err == nil && state == quota.ClaimWon {
		err = l.work.Claims.Finish(ctx, claim, false)
	}
	if err != nil {
		l.unheard = true
		l.ledger.failed(err)
		l.Log.Debug("cannot tell whether a daemon ran when the tick came", "tick", tick.ID(), "error", err)
	}
	return state == quota.ClaimDone
}

// recordClaim is the claim that records that a tick came while a daemon ran.
func (l *lane) recordClaim(tick schedule.Tick, ttl time.Duration) quota.Claim {
	c := l.tickClaim(tick, ttl)
	c.Name += "/came"
	return c
}
