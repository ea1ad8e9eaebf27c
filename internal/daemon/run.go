package daemon

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// Outcomes of ticks that are not outcomes of a sweep.
const (
	leftOut   = "left_out"  // denied by the lane's share of the day
	paced     = "paced"     // denied by a pace: units are left for later
	overtaken = "overtaken" // too late
	overlaps  = "overlap"   // the previous run had not ended
	lost      = "lost"      // lost in a crash
	panicked  = "panicked"
)

// process runs a tick of a leased lane. A panic is logged and counts as a run, and the next tick
// runs as usual.
func (l *lane) process(ctx context.Context, tick schedule.Tick) (result result) {
	defer func() {
		if cause := recover(); cause != nil {
			l.d.Metrics.panics.Inc()
			l.ended(ctx, tick, ending{outcome: panicked})
			if l.Region != "" {
				l.d.Metrics.failures.WithLabelValues(l.Region, panicked).Inc()
			}
			l.d.Log.Error("run panicked; the next tick runs as usual", "tick", tick.ID(),
				"panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			result = done
		}
	}()
	k, err := l.Work.earlier(ctx, l)
	complete, begun := k.runs[tick.ID()]
	switch {
	case err != nil:
		return l.retry(tick, err)
	case complete:
		l.d.Log.Info("tick done: its chart is already complete", "tick", tick.ID())
		return done
	case begun: // begun and admitted by a crashed daemon, or by this one before a pause
		return l.Work.run(ctx, l, tick, true)
	}
	// A tick that resumes a chart needs the share of a whole run, like any other tick. Otherwise a
	// lane that is often interrupted would run at every tick, whatever its weight.
	runs, err := l.admitted(ctx, tick)
	if err != nil {
		return l.retry(tick, err)
	}
	if !runs {
		return done
	}
	return l.Work.run(ctx, l, tick, false)
}

// retry schedules the tick for another attempt soon, because the ledger or the catalogue failed
// before any page was bought.
func (l *lane) retry(tick schedule.Tick, err error) result {
	if fromLedger(err) {
		l.d.uncharged.Store(true)
		l.d.ledger.failed(err)
	} else {
		l.d.catalogue.failed(err)
	}
	l.d.Log.Debug("cannot run tick, retrying", "tick", tick.ID(), "error", err)
	return retry
}

func fromLedger(err error) bool {
	return errors.Is(err, quota.ErrUnreachable) || errors.Is(err, quota.ErrLedgerUnusable)
}

// admitted reports whether the lane's share admits the tick while units are short. It logs the
// decision.
func (l *lane) admitted(ctx context.Context, tick schedule.Tick) (bool, error) {
	s, err := l.cfg.snapshot(ctx, l.policy(), l.Name())
	if err != nil {
		return false, err
	}
	decision, book, err := s.admit(ctx, s.find(l.Name()), tick.At)
	if err != nil {
		return false, err
	}
	if decision.Short {
		shares, until := book.Shares(s.at.UnixMicro(), s.left)
		l.d.logShares(s.Policy, shares, until)
	}
	switch {
	case decision.Run:
	case s.Budget.Observe:
		l.d.Log.Info("tick would be left out: it is observed only", "tick", tick.ID(),
			"share", decision.String())
		return true, nil
	default:
		l.ended(ctx, tick, ending{outcome: leftOut})
		l.d.Log.Info("tick left out", "tick", tick.ID(), "share", decision.String())
	}
	return decision.Run, nil
}
